/* What Slurm says of jobs, in the JSON of squeue --json and in words. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings belong to the JSON; "" where there is nothing. */
struct slurm_reply {
    int64_t id;
    const char *name;
    const char *state; /* PENDING, RUNNING, NODE_FAIL, ... */
    bool completing;   /* has ended, but not all its nodes have said so */
    const char *reason, *partition;
    const char *nodes;              /* n[1-2] */
    int64_t restarts;               /* times that Slurm has put it back into its queue */
    int64_t exit_code, exit_signal; /* of the script; -1: none */
    int64_t priority;
    double start;         /* Unix seconds: of a job that waits, when it may start; 0: not known */
    double limit_seconds; /* of the allocation; NAN: none */
};

/* Of version 22.05 (v0.0.38) and of the later form, where states are lists and numbers objects.
 * false: it is no job. */
bool slurm_reply_read(const json_t *job, struct slurm_reply *reply);

/* Jobs in the partition's queue that stand before it. */
int64_t slurm_reply_ahead(const json_t *jobs, const struct slurm_reply *reply);

/* "waiting for priority: 3 jobs ahead [Priority]" */
void slurm_reply_waiting(const struct slurm_reply *reply, int64_t ahead, char *text, size_t bytes);

/* "failed as a node did [NODE_FAIL]": how an allocation ended. */
const char *slurm_state_words(const char *state);
