/*
 * Machines that train: judging their reports, checking this one, and what the slowest means for a
 * plan. What a report holds: man train-worker, --self-check --json; of a prolog or epilog also
 * "phase", "job", "partition" and what etc/slurm's scripts did. All functions are thread-safe.
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

/* From when on a node is slow, and from when on it is not to be used: share by which its SGEMM is
 * behind the median of its own earlier checks or of the others of its kind, at least three each and
 * of the others the newest 128, so that a job's start on many nodes costs each report the same.
 * Memory's bandwidth, which is less steady, makes a node slow at most. */
struct node_limits {
    double slow, drain; /* 0.15, 0.3; drain 0: never for its speed */
};

struct node_peers {
    const struct node_figures *own; /* of its earlier fine checks */
    size_t own_count;
    const struct node_figures *others; /* newest of each other node of its kind and cores */
    size_t other_count;
    const char *kind;
};

/* Judges figures alone. reason becomes "" for fine. Pure. */
enum node_verdict node_judge_speed(const struct node_figures *figures,
                                   const struct node_peers *peers, const struct node_limits *limits,
                                   char reason[NODE_REASON_BYTES]);

struct node_judged {
    enum node_verdict verdict;
    char reason[NODE_REASON_BYTES]; /* "" for none */
    size_t
        known; /* bytes of the reason that the job need not be told: an earlier report's, or load */
};

/* Checks a report, judges and stores it. Problems of the document go into *problems, and then
 * nothing is stored. now: Unix time. */
int node_report(struct store *s, const char *name, const json_t *report,
                const struct node_limits *limits, double now, struct node_judged *judged,
                struct problems *problems, struct error *e);

/* A host's name: 1 to 64 letters, digits, dots, hyphens and underscores. Not ALL, which is every
 * node for Slurm. */
bool node_name_is_valid(const char *name);
char *node_own_name(char name[NODE_NAME_BYTES]); /* of this machine */

/* Days after which a check says nothing any more. */
#define NODE_CHECK_DAYS 30
/* The stored verdict, or NODE_UNKNOWN also where the last check is too old: then reason says so. */
enum node_verdict node_verdict_now(const struct store_node *node, double now,
                                   char reason[NODE_REASON_BYTES]);

/* How many times longer the slowest of the nodes that a job may get takes than the usual one of its
 * kind, from which measured speeds come: 1 where none is known to be slower. name (may be NULL)
 * becomes that node's. */
int node_slowest(struct store *s, const struct job_spec *spec, double now, double *times,
                 char name[NODE_NAME_BYTES], struct error *e);

/* Runs `command NODE REASON` and waits for its end, at most two seconds. */
int node_tell(const char *command, const char *node, const char *reason, struct error *e);
