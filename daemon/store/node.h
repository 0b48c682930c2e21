/* Machines: the current state of each and its checks. */
#pragma once

#include "daemon/store/store.h"

enum node_verdict {
    NODE_UNKNOWN, /* never checked, checked long ago, or only under load */
    NODE_FINE,
    NODE_SLOW,  /* usable, with a warning */
    NODE_DRAIN, /* must not be used */
    NODE_VERDICTS
};
const char *node_verdict_name(enum node_verdict verdict); /* "fine" */

/* NAN: not measured. */
struct node_figures {
    double gflops, memory_gb_per_sec, clock_ghz;
};

#define STORE_NODE_CHECKS 200 /* kept per node */
/* Beyond the limit, a new node replaces the one with the oldest check if that is old enough;
 * otherwise ERR_CONFLICT. */
#define STORE_NODES_MAX           4096
#define STORE_NODE_FORGET_SECONDS (7 * 86400)

struct store_node {
    char *name, *kind;
    char *partition; /* NULL: unknown */
    int64_t cores;
    struct node_figures figures; /* from the newest check without load */
    enum node_verdict verdict;
    int64_t load; /* threads of other programs during the last measurement */
    char *reason; /* NULL: none */
    double checked_at;
    char *report; /* JSON text */
};
struct store_nodes {
    struct store_node *items;
    size_t count, capacity;
};
void store_nodes_clear(struct store_nodes *nodes);

/* Lists nodes by name, starting after `after` ("": from the first); max -1: all. Omits reports. */
int store_node_list(struct store *s, const char *after, int64_t max, struct store_nodes *nodes,
                    struct error *e);

/* Gets a node with its report; an empty list if it is unknown. */
int store_node_get(struct store *s, const char *name, struct store_nodes *nodes, struct error *e);

/* Creates an array of one {"total", "slow" (checked after that time), "drained", "slots"}. This
 * machine and its slots are counted even if it is not stored. */
int store_node_sums(struct store *s, const char *own, int64_t slots, double checked_after,
                    json_t **sums, struct error *e);

/* Lists the figures of other fine and slow nodes of the same kind, newest check first. */
int store_node_peers(struct store *s, const char *node, const char *kind, int64_t cores,
                     double after, struct node_figures *figures, size_t max, size_t *count,
                     struct error *e);

/* Gets another node that reported the same data later than `after`, or NULL. The caller frees
 * it. */
int store_node_witness(struct store *s, const char *name, const char *path, double after,
                       char **witness, struct error *e);

/* A check result. If it is older than the stored state it only enters the history. Without figures,
 * the node keeps its figures, cores, load and report. If measured under load (NODE_UNKNOWN), it
 * keeps the figures and verdict of the last check without load. */
struct store_node_check {
    const char *node, *kind, *partition, *phase, *reason, *report;
    double t;
    int64_t cores, job_id, load; /* 0: none */
    struct node_figures figures;
    enum node_verdict verdict;
};
int store_node_check(struct store *s, const struct store_node_check *check, double now,
                     struct error *e);

/* Appends up to `max` checks of each node in [first, last], newest first, to "history" of its
 * object in nodes: {"t", "phase", "job", "gflops", "memory_gb_per_sec", "clock_ghz", "load",
 * "verdict", "reason"}. */
int store_node_history(struct store *s, const char *first, const char *last, int64_t max,
                       json_t *nodes, struct error *e);

/* Lists the figures of the node's fine checks before a time, newest first. */
int store_node_fine(struct store *s, const char *node, double before, struct node_figures *figures,
                    size_t max, size_t *count, struct error *e);

/* Gets "node n1: why" for the newest prolog of this job that drained its node, or NULL. The caller
 * frees it. */
int store_node_refusal(struct store *s, int64_t job_id, double since, char **words,
                       struct error *e);

/* Creates an array of {"job", "node", "slots"} for active jobs, from their prologs, newest first; a
 * job that runs on this machine only is listed with this machine's name. */
int store_node_jobs(struct store *s, const char *own, json_t **jobs, struct error *e);
