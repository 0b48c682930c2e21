/* Nodes: judges their reports, checks this machine, and estimates the effect of the slowest node on
 * a plan. A report is the output of train-worker --self-check --json; in a prolog or epilog,
 * etc/slurm's scripts add "phase", "job", "partition" and their actions. Thread-safe. */
#pragma once

#include <jansson.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/predict.h"
#include "common/problem.h"
#include "daemon/store/node.h"

#define NODE_NAME_BYTES   65
#define NODE_REASON_BYTES 768

/* How far SGEMM must be below the median of the node's own checks, or of other nodes of its kind,
 * for a verdict. A median needs three values; only the newest 128 of other nodes are used, so a
 * report's cost is bounded. Memory bandwidth varies more and at most makes a node slow. */
struct node_limits {
    double slow, drain; /* 0.15, 0.3; drain 0: never */
};

struct node_peers {
    const struct node_figures *own; /* earlier fine checks */
    size_t own_count;
    const struct node_figures
        *others; /* newest check of each other node of the same kind and cores */
    size_t other_count;
    const char *kind;
};

/* Sets reason to "" if the node is fine. Pure function. */
enum node_verdict node_judge_speed(const struct node_figures *figures,
                                   const struct node_peers *peers, const struct node_limits *limits,
                                   char reason[NODE_REASON_BYTES]);

struct node_judged {
    enum node_verdict verdict;
    char reason[NODE_REASON_BYTES]; /* "" if none */
    size_t known; /* length of the part of the reason that the job need not repeat */
};

/* Validates, judges and stores a report. Stores nothing if it adds any *problems. now: Unix
 * time. */
int node_report(struct store *s, const char *name, const json_t *report,
                const struct node_limits *limits, double now, struct node_judged *judged,
                struct problems *problems, struct error *e);

/* 1 to 64 letters, digits, dots, hyphens and underscores; not ALL, Slurm's name for every node. */
bool node_name_is_valid(const char *name);
char *node_own_name(char name[NODE_NAME_BYTES]); /* name of this machine */

/* Days for which a check is valid. */
#define NODE_CHECK_DAYS 30
/* Returns the stored verdict, or NODE_UNKNOWN with a reason if the last check is too old. */
enum node_verdict node_verdict_now(const struct store_node *node, double now,
                                   char reason[NODE_REASON_BYTES]);

/* Gets the factor by which the slowest node the job may get is slower than usual for its kind; 1:
 * none is known to be slower. name (may be NULL) is set to that node. */
int node_slowest(struct store *s, const struct job_spec *spec, double now, double *times,
                 char name[NODE_NAME_BYTES], struct error *e);

/* Runs `command NODE REASON` for at most two seconds. */
int node_tell(const char *command, const char *node, const char *reason, struct error *e);
