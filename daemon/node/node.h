/*
 * Nodes: judging their reports, checking this machine, and the effect of the slowest node on a
 * plan. A report is the output of train-worker --self-check --json, in a prolog or epilog with
 * "phase", "job", "partition" and the actions of etc/slurm's scripts. Thread-safe.
 */
#pragma once

#include <jansson.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/predict.h"
#include "common/problem.h"
#include "daemon/store/node.h"

#define NODE_NAME_BYTES   65
#define NODE_REASON_BYTES 768

/* Shares by which SGEMM must be below the median of the node's own checks, or of other nodes of its
 * kind, for a verdict; each needs three values, of others the newest 128, so that a report's cost
 * is bounded. Memory bandwidth, which varies more, makes a node slow at most. */
struct node_limits {
    double slow, drain; /* 0.15, 0.3; drain 0: never */
};

struct node_peers {
    const struct node_figures *own; /* earlier fine checks */
    size_t own_count;
    const struct node_figures *others; /* newest check of each other node of its kind and cores */
    size_t other_count;
    const char *kind;
};

/* reason becomes "" if fine. Pure. */
enum node_verdict node_judge_speed(const struct node_figures *figures,
                                   const struct node_peers *peers, const struct node_limits *limits,
                                   char reason[NODE_REASON_BYTES]);

struct node_judged {
    enum node_verdict verdict;
    char reason[NODE_REASON_BYTES]; /* "" for none */
    size_t known;                   /* bytes of the reason that the job need not be told */
};

/* Checks, judges and stores a report. If *problems gets any, nothing is stored. now: Unix seconds.
 */
int node_report(struct store *s, const char *name, const json_t *report,
                const struct node_limits *limits, double now, struct node_judged *judged,
                struct problems *problems, struct error *e);

/* 1 to 64 letters, digits, dots, hyphens and underscores; not ALL, Slurm's word for every node. */
bool node_name_is_valid(const char *name);
char *node_own_name(char name[NODE_NAME_BYTES]); /* of this machine */

/* Days a check is valid. */
#define NODE_CHECK_DAYS 30
/* The stored verdict; NODE_UNKNOWN if the last check is too old, as reason then says. */
enum node_verdict node_verdict_now(const struct store_node *node, double now,
                                   char reason[NODE_REASON_BYTES]);

/* How many times longer the slowest node that the job may get takes than a usual one of its kind;
 * 1: none is known to be slower. name (may be NULL) becomes that node's. */
int node_slowest(struct store *s, const struct job_spec *spec, double now, double *times,
                 char name[NODE_NAME_BYTES], struct error *e);

/* Runs `command NODE REASON` for at most two seconds. */
int node_tell(const char *command, const char *node, const char *reason, struct error *e);
