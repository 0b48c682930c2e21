/* A job as the API tells it, read for showing. */
#ifndef TRAIND_CLIENT_JOB_H
#define TRAIND_CLIENT_JOB_H

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"

/* Strings are borrowed from the JSON, "" where there is none; numbers are NAN where there is none.
 */
struct job {
    long id;
    const char *name, *state, *reason;
    double created_at, started_at, finished_at; /* Unix seconds */
    double step, train_steps, epoch;
    double loss, lr, images_per_sec;
    double ttt_seconds, top1, top5; /* fractions */
    double global_batch;            /* images a step */
    double estimated_start;         /* of a queued job, Unix seconds */
    double checkpoint_step, restarts;
};

void job_read(const json_t *json, struct job *job);

/* GET /v1/jobs/ID. *json is a new reference that the strings of *job borrow from. */
int job_fetch(long id, json_t **json, struct job *job, struct error *e);

bool job_ended(const struct job *job);

/* What trainctl wait exits with: 0 succeeded, 1 failed, 130 cancelled; -1 while it has not ended.
 */
int job_outcome(const struct job *job);

/* Seconds of training left at this speed; NAN where it cannot be said. Evaluations are not in it.
 */
double job_seconds_left(const struct job *job, double images_per_sec);

/* 0 to 1; 0 where there are no steps yet. */
double job_progress(const struct job *job);

/* "green", "red"...: the colour a state is shown in, as libsmartcols names it; NULL: none. */
const char *job_state_color(const char *state);

/* One line on how it ended: "job 3 succeeded: top-1 86.31 %, time to train 4 min 52 s". */
void job_print_outcome(const struct job *job);

#endif
