/* Machines that train, in the store: the newest state of each, and its checks. As store.h: any
 * thread, 0 or a negative error. */
#pragma once

#include "daemon/store/store.h"

enum node_verdict {
    NODE_UNKNOWN, /* never checked, or long ago, or only while other work computed there */
    NODE_FINE,
    NODE_SLOW,  /* may be used, and is named */
    NODE_DRAIN, /* must not be used */
    NODE_VERDICTS
};
const char *node_verdict_name(enum node_verdict verdict); /* "fine" */

/* What a check measured; NAN: it did not. */
struct node_figures {
    double gflops, memory_gb_per_sec, clock_ghz;
};

#define STORE_NODE_CHECKS 200 /* kept of each node */
/* Nodes that are kept. A new one beyond takes the place of the one that was checked the longest
 * ago, if that is at least so many seconds; else it is refused. */
#define STORE_NODES_MAX           4096
#define STORE_NODE_FORGET_SECONDS (7 * 86400)

struct store_node {
    char *name, *kind;
    char *partition; /* NULL: none known */
    int64_t cores;
    struct node_figures figures; /* of the newest check without load, if there was one */
    enum node_verdict verdict;
    int64_t load; /* threads of others that computed while it was last measured */
    char *reason; /* NULL: none */
    double checked_at;
    char *report; /* JSON text */
};
struct store_nodes {
    struct store_node *items;
    size_t count, room;
};
void store_nodes_clear(struct store_nodes *nodes);

/* Those behind a name ("": from the first), by name, at most `most` (-1: all). Without reports. */
int store_node_list(struct store *s, const char *after, int64_t most, struct store_nodes *nodes,
                    struct error *e);

/* The one of this name in *nodes, with its report; none where it is not known. */
int store_node_get(struct store *s, const char *name, struct store_nodes *nodes, struct error *e);

/* Of all nodes, with this machine whether it is known or not, and its slots as they are here: an
 * array of one {"total", "slow": and checked after then, "drained", "slots"}. */
int store_node_sums(struct store *s, const char *own, int64_t slots, double checked_after,
                    json_t **sums, struct error *e);

/* Figures of the other fine and slow nodes of a kind that were checked after then, the newest of
 * them. */
int store_node_peers(struct store *s, const char *node, const char *kind, int64_t cores,
                     double after, struct node_figures *figures, size_t most, size_t *count,
                     struct error *e);

/* Another node whose newest report, later than then, says that it sees these data; NULL: none. The
 * caller frees it. */
int store_node_witness(struct store *s, const char *name, const char *path, double after,
                       char **witness, struct error *e);

/* A check, newer than the node's or not (a report may come late: then only the history gets it). A
 * node that is not known yet comes to be. A report without figures
 * (an epilog's) leaves the node's figures, cores, load and report as they are; one that was
 * measured under load, whose verdict is NODE_UNKNOWN, leaves figures and verdict of an earlier one
 * that was not. */
struct store_node_check {
    const char *node, *kind, *partition, *phase, *reason, *report;
    double t;
    int64_t cores, job_id, load; /* 0: none */
    struct node_figures figures;
    enum node_verdict verdict;
};
/* ERR_CONFLICT: there are STORE_NODES_MAX others. */
int store_node_check(struct store *s, const struct store_node_check *check, double now,
                     struct error *e);

/* Appends the checks of the nodes whose names are from `first` to `last`, the newest first, at most
 * `most` of each, to the array "history" of each in an object by name: {"t", "phase", "job",
 * "gflops", "memory_gb_per_sec", "clock_ghz", "load", "verdict", "reason"}. */
int store_node_history(struct store *s, const char *first, const char *last, int64_t most,
                       json_t *nodes, struct error *e);

/* GFLOP/s and GB/s of its newest fine checks before a time, the newest first. */
int store_node_fine(struct store *s, const char *node, double before, struct node_figures *figures,
                    size_t most, size_t *count, struct error *e);

/* "node n1: why", of the newest prolog for this job since then that drained its node; NULL: none.
 * The caller frees it. */
int store_node_refusal(struct store *s, int64_t job_id, double since, char **words,
                       struct error *e);

/* Jobs that have not ended, the newest first: a new array of {"job", "node": each that its prolog
 * told of, "slots": that it takes there}; those that run on this machine alone with its name. */
int store_node_jobs(struct store *s, const char *own, json_t **jobs, struct error *e);
