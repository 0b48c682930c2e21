/* Machines: the newest state and the checks of each. */
#pragma once

#include "daemon/store/store.h"

enum node_verdict {
    NODE_UNKNOWN, /* never or long ago checked, or only under load */
    NODE_FINE,
    NODE_SLOW,  /* used with a warning */
    NODE_DRAIN, /* must not be used */
    NODE_VERDICTS
};
const char *node_verdict_name(enum node_verdict verdict); /* "fine" */

/* NAN: not measured. */
struct node_figures {
    double gflops, memory_gb_per_sec, clock_ghz;
};

#define STORE_NODE_CHECKS 200 /* kept of each node */
/* A new node beyond the limit replaces the one checked longest ago, if that is old enough; else
 * ERR_CONFLICT. */
#define STORE_NODES_MAX           4096
#define STORE_NODE_FORGET_SECONDS (7 * 86400)

struct store_node {
    char *name, *kind;
    char *partition; /* NULL: none known */
    int64_t cores;
    struct node_figures figures; /* of the newest check without load */
    enum node_verdict verdict;
    int64_t load; /* threads of others during the last measurement */
    char *reason; /* NULL: none */
    double checked_at;
    char *report; /* JSON text */
};
struct store_nodes {
    struct store_node *items;
    size_t count, room;
};
void store_nodes_clear(struct store_nodes *nodes);

/* By name, behind `after` ("": from the first); -1: all. Without reports. */
int store_node_list(struct store *s, const char *after, int64_t most, struct store_nodes *nodes,
                    struct error *e);

/* With its report; empty if unknown. */
int store_node_get(struct store *s, const char *name, struct store_nodes *nodes, struct error *e);

/* An array of one {"total", "slow" (checked after then), "drained", "slots"}; counts this machine
 * with its slots even if unknown. */
int store_node_sums(struct store *s, const char *own, int64_t slots, double checked_after,
                    json_t **sums, struct error *e);

/* Of other fine and slow nodes of this kind, the newest checks first. */
int store_node_peers(struct store *s, const char *node, const char *kind, int64_t cores,
                     double after, struct node_figures *figures, size_t most, size_t *count,
                     struct error *e);

/* Another node that reported these data after then: a new text, or NULL. */
int store_node_witness(struct store *s, const char *name, const char *path, double after,
                       char **witness, struct error *e);

/* A check; a late one only enters the history. Without figures it keeps the node's figures, cores,
 * load and report; measured under load (NODE_UNKNOWN) it keeps figures and verdict of one that was
 * not. */
struct store_node_check {
    const char *node, *kind, *partition, *phase, *reason, *report;
    double t;
    int64_t cores, job_id, load; /* 0: none */
    struct node_figures figures;
    enum node_verdict verdict;
};
int store_node_check(struct store *s, const struct store_node_check *check, double now,
                     struct error *e);

/* Appends at most `most` checks per node of [first, last], the newest first, to "history" of its
 * object in nodes: {"t", "phase", "job", "gflops", "memory_gb_per_sec", "clock_ghz", "load",
 * "verdict", "reason"}. */
int store_node_history(struct store *s, const char *first, const char *last, int64_t most,
                       json_t *nodes, struct error *e);

/* Of its fine checks before a time, the newest first. */
int store_node_fine(struct store *s, const char *node, double before, struct node_figures *figures,
                    size_t most, size_t *count, struct error *e);

/* "node n1: why" of this job's newest prolog that drained its node: a new text, or NULL. */
int store_node_refusal(struct store *s, int64_t job_id, double since, char **words,
                       struct error *e);

/* A new array of {"job", "node", "slots"} of active jobs by their prologs, the newest first; jobs
 * on this machine alone have its name. */
int store_node_jobs(struct store *s, const char *own, json_t **jobs, struct error *e);
