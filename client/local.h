/* A training run by trainctl itself, for `run` and `bench`, with the daemon's launcher `local` on
 * this machine or the hosts the job names. The first SIGINT, SIGTERM or SIGHUP stops it after the
 * current step, with a checkpoint; the next one at once. One at a time. */
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
    bool benchmarks; /* the first signal stops it at once, stalls are not detected, SGEMM is
                        measured */
    json_t
        *job; /* as in the API; members it has are updated from events, and the state at the end */
    /* Private. */
    char attempt_dir[PATH_MAX];
    struct launch_process process;
    FILE *events; /* NULL: not there yet */
    json_t *event;
    int64_t code;      /* mpirun's exit code */
    int stops;         /* requests to end so far */
    double stopped_at; /* clock_monotonic, of the last request */
    bool explained;    /* an event has the reason of the failure */
    bool gone, ended;  /* mpirun has ended; the last event was returned */
};

/* The worker beside this program, else in PATH. The caller frees it. */
int local_find_worker(char **path, struct error *e);

/* threads_per_worker, or else cores / workers of this machine. */
int64_t local_threads(const struct job_spec *spec);

/* *l is filled up to job. On error nothing runs. Free with local_clear. */
int local_start(struct local *l, struct error *e);

/* The next event, as stream_next. The last one is a state; then l->ended is set and job has the
 * outcome. */
int local_next(struct local *l, int fd, double seconds, struct stream_event *event);

/* Each further call stops it harder. */
void local_stop(struct local *l);

void local_append_log(const struct local *l, struct error *e);

void local_clear(struct local *l);
