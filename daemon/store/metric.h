/* Series of a run: its steps, in full and at coarser resolutions, and its evaluations. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/attempt.h"
#include "daemon/store/store.h"

/* Of the newest `max` jobs, lists those that were training after `since`. */
struct store_trained {
    int64_t id, global_batch;
};
int store_jobs_trained_since(struct store *s, double since, int64_t max, struct store_trained *jobs,
                             size_t *count, struct error *e);

/* Gets the mean images per second of the steps up to the job's current step. NAN: none, or run_stop
 * of this attempt reports it. */
int store_steps_speed(struct store *s, int64_t job_id, int64_t attempt, double *images_per_sec,
                      struct error *e);

/* Creates an array of {"step", "epoch", "top1", "top5", "loss", "images", "t"}, ordered by step. */
int store_eval_list(struct store *s, int64_t job_id, json_t **evals, struct error *e);

/* Sums over one step or a bucket of steps. */
struct store_metric_sum {
    double count; /* steps that have this metric */
    double sum, min, max;
};
struct store_metric_part {
    int64_t rows;
    int64_t step; /* step, epoch and t of the last row */
    double epoch, t;
    struct store_metric_sum of[EVENT_METRICS_MAX]; /* indexed as event_metric_at */
};
typedef void store_metric_visit(void *context, const struct store_metric_part *part);

/* Adds `part` to `into`. part must come after into. */
void store_metric_fold(struct store_metric_part *into, const struct store_metric_part *part);

/* Moves the part to the middle of its steps, which begin after `before`; sets `before` to the place
 * of its last row. */
void store_metric_to_middle(struct store_metric_part *part, struct store_metric_part *before);

struct store_metric_ends {
    int64_t rows; /* stops counting at max + 1 */
    int64_t first_step, last_step;
};
int store_metric_ends(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                      int64_t max, struct store_metric_ends *ends, struct error *e);

/* Like store_metric_ends_between, from the first step that ended at t or later; rows is 0 or 1. */
int store_metric_ends_since(struct store *s, int64_t job_id, double t,
                            struct store_metric_ends *ends, struct error *e);

/* Visits the steps [from_step, to_step) condensed to between `parts` and about 8 x `parts` parts;
 * parts 0: every step. */
int store_metric_parts(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                       int64_t parts, store_metric_visit *visit, void *context, struct error *e);

int store_metric_each(struct store *s, int64_t job_id, int64_t from_step, int64_t limit,
                      store_metric_visit *visit, void *context, struct error *e);

/* Buckets: level l has a row for every 8^l steps, computed from the level below in the transaction
 * that stores the steps, so a step repeated after a resume counts once. */

struct sql;

/* Rebuilds the buckets of [first_step, last_step] in the caller's transaction. */
int store_buckets_update(struct sql *c, int64_t job_id, int64_t first_step, int64_t last_step,
                         struct error *e);

/* Builds the buckets of a database from an older version, with one transaction per job. */
int store_buckets_fill(struct store *s, struct error *e);
