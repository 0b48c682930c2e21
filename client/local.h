/* A training run by trainctl itself, for `run` and `bench`, using the daemon's launcher `local` on
 * this machine or the hosts of the job. The first SIGINT, SIGTERM or SIGHUP stops it after the
 * current step, with a checkpoint; the next one stops it at once. Only one run at a time. */
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
    const char *run_dir; /* absolute; contains job.json */
    int64_t attempt;
    bool resumes;    /* continue from the newest checkpoint */
    bool benchmarks; /* stop at once on a signal, ignore stalls, measure SGEMM */
    json_t *job; /* in the API's form; its members are updated from events, the state at the end */
    /* Private. */
    char attempt_dir[PATH_MAX];
    struct launch_process process;
    FILE *events; /* NULL: does not exist yet */
    json_t *event;
    int64_t code;      /* mpirun's exit code */
    int stops;         /* number of stop requests so far */
    double stopped_at; /* clock_monotonic of the last request */
    bool explained;    /* an event has given the reason of the failure */
    bool gone, ended;  /* gone: mpirun has ended; ended: the last event has been returned */
};

/* Finds the worker next to this program, otherwise in PATH. The caller frees *path. */
int local_find_worker(char **path, struct error *e);

/* Returns threads_per_worker, or if it is 0 cores / workers of this machine. */
int64_t local_threads(const struct job_spec *spec);

/* The fields of l up to job must be filled. After an error nothing runs. Free with local_clear. */
int local_start(struct local *l, struct error *e);

/* Gets the next event, like stream_next. The last one is a state; then l->ended is set and job
 * contains the outcome. */
int local_next(struct local *l, int fd, double seconds, struct stream_event *event);

/* Each further call stops it more forcefully. */
void local_stop(struct local *l);

void local_append_log(const struct local *l, struct error *e);

void local_clear(struct local *l);
