/* A training that trainctl runs itself, for `run` and `bench`: by the daemon's launcher `local`, on
 * this machine or the hosts that the job names. SIGINT, SIGTERM and SIGHUP stop it: the first time
 * after the step it is in, with a checkpoint, then at once. One at a time. */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/stream.h"
#include "common/job/job_spec.h"
#include "launch/launch.h"

struct local {
    const struct job_spec *spec;
    const char *run_dir; /* absolute; holds job.json */
    int64_t attempt;
    bool resumes;    /* from the newest checkpoint */
    bool benchmarks; /* the first signal ends it at once, stalls are not watched for, SGEMM is
                        measured */
    json_t *job;     /* as the API has one: takes from the events what it has members for, null ones
                        too; at the end the state is the outcome */
    /* Own. */
    char attempt_dir[PATH_MAX - 64];
    struct launch_process process;
    FILE *events; /* NULL: not there yet */
    json_t *event;
    int64_t code;      /* that mpirun ended with */
    int stops;         /* how often it was asked to end */
    double stopped_at; /* clock_monotonic; the last of them */
    bool explained;    /* an event says why it failed */
    bool gone, ended;  /* mpirun; and all that it left is told */
};

/* The worker that was built or installed beside this program; else by PATH. The caller frees it. */
int local_find_worker(char **path, struct error *e);

/* threads_per_worker, or else cores / workers of this machine. */
int64_t local_threads(const struct job_spec *spec);

/* *l is filled up to job. On error nothing runs. Free with local_clear. */
int local_start(struct local *l, struct error *e);

/* The next event of the run, as stream_next; its last is a state, after which l->ended holds and
 * job has the outcome. */
int local_next(struct local *l, int fd, double seconds, struct stream_event *event);

/* Asks it to end; harder each time. */
void local_stop(struct local *l);

/* What the workers printed at the end, for an error. */
void local_append_log(const struct local *l, struct error *e);

void local_clear(struct local *l);
