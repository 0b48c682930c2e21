/* Machines that train, in the store: the newest state of each, and its checks. As store.h: any
 * thread, 0 or a negative error. */
#ifndef TRAIND_DAEMON_STORE_NODE_H
#define TRAIND_DAEMON_STORE_NODE_H

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

/* All, by name. */
int store_node_list(struct store *s, struct store_nodes *nodes, struct error *e);

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

/* The checks of a node, the newest first, at most `most`: a new array of {"t", "phase", "job",
 * "gflops", "memory_gb_per_sec", "clock_ghz", "load", "verdict", "reason"}; empty for a node not
 * known. */
int store_node_history(struct store *s, const char *node, int64_t most, json_t **history,
                       struct error *e);

/* GFLOP/s and GB/s of its newest fine checks before a time, the newest first. */
int store_node_fine(struct store *s, const char *node, double before, struct node_figures *figures,
                    size_t most, size_t *count, struct error *e);

/* "node n1: why", of the newest prolog for this job since then that drained its node; NULL: none.
 * The caller frees it. */
int store_node_refusal(struct store *s, int64_t job_id, double since, char **words,
                       struct error *e);

/* Jobs whose prolog told of this node and that have not ended: at most `most` ids. */
int store_node_jobs(struct store *s, const char *node, int64_t *ids, size_t most, size_t *count,
                    struct error *e);

#endif
