/* The series of a run: its steps, as such and at coarser scales, and its evaluations. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/attempt.h"
#include "daemon/store/store.h"

/* Of the `most` newest jobs, those that trained at some time since `since`. */
struct store_trained {
    int64_t id, global_batch;
};
int store_jobs_trained_since(struct store *s, double since, int64_t most,
                             struct store_trained *jobs, size_t *count, struct error *e);

/* Mean images per second of the steps up to the job's step. NAN: none, or run_stop of this attempt
 * has it. */
int store_steps_speed(struct store *s, int64_t job_id, int64_t attempt, double *images_per_sec,
                      struct error *e);

/* A new array of {"step", "epoch", "top1", "top5", "loss", "images", "t"}, by step. */
int store_eval_list(struct store *s, int64_t job_id, json_t **evals, struct error *e);

/* One step or a bucket of steps. */
struct store_metric_sum {
    double count; /* steps with this metric */
    double sum, min, max;
};
struct store_metric_part {
    int64_t rows;
    int64_t step; /* of the last row, as are epoch and t */
    double epoch, t;
    struct store_metric_sum of[EVENT_METRICS_MAX]; /* by place in event_metric_at */
};
typedef void store_metric_visit(void *context, const struct store_metric_part *part);

/* part must lie behind into. */
void store_metric_fold(struct store_metric_part *into, const struct store_metric_part *part);

/* Places the part at the middle of its steps, which begin behind `before`; its last row's place
 * becomes the new `before`. */
void store_metric_to_middle(struct store_metric_part *part, struct store_metric_part *before);

struct store_metric_ends {
    int64_t rows; /* counted up to most + 1 */
    int64_t first_step, last_step;
};
int store_metric_ends(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                      int64_t most, struct store_metric_ends *ends, struct error *e);

/* From the first step that ended at t or later; rows is 0 or 1. */
int store_metric_ends_since(struct store *s, int64_t job_id, double t,
                            struct store_metric_ends *ends, struct error *e);

/* Steps [from_step, to_step) in `parts` to about 8 x `parts` parts; 0: step by step. */
int store_metric_parts(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                       int64_t parts, store_metric_visit *visit, void *context, struct error *e);

int store_metric_each(struct store *s, int64_t job_id, int64_t from_step, int64_t limit,
                      store_metric_visit *visit, void *context, struct error *e);

/* Level l has a row for each 8^l steps, made from the level below in the transaction that stores
 * the steps, so a step that is repeated after a resume counts once. */

struct sql;

/* Rebuilds the buckets of [first_step, last_step], in the caller's transaction. */
int store_buckets_update(struct sql *c, int64_t job_id, int64_t first_step, int64_t last_step,
                         struct error *e);

/* Builds the buckets of an older database, a transaction per job. */
int store_buckets_fill(struct store *s, struct error *e);
