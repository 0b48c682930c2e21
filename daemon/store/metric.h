/* The series of a run: its steps, as such and at coarser scales, and its evaluations. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/attempt.h"
#include "daemon/store/store.h"

/* The jobs that trained at some time since `since`, newest first, as far as they are among the
 * `most` newest: their ids and images a step. */
struct store_trained {
    int64_t id, global_batch;
};
int store_jobs_trained_since(struct store *s, double since, int64_t most,
                             struct store_trained *jobs, size_t *count, struct error *e);

/* Images a second in all steps of the series that belong to the run: not those behind the job's
 * step, where an attempt fell back to its checkpoint. NAN: there are none, or run_stop of this
 * attempt has told it. */
int store_steps_speed(struct store *s, int64_t job_id, int64_t attempt, double *images_per_sec,
                      struct error *e);

/* Evaluations of a job by step: a new JSON array of {"step", "epoch", "top1", "top5", "loss",
 * "images", "t"}. */
int store_eval_list(struct store *s, int64_t job_id, json_t **evals, struct error *e);

/* Some steps of a series in one: a single one, or a bucket of them */
struct store_metric_sum {
    double count; /* of steps that had such a number */
    double sum, min, max;
};
struct store_metric_part {
    int64_t rows;
    int64_t step; /* of the last row, as are epoch and t */
    double epoch, t;
    struct store_metric_sum of[EVENT_METRICS_MAX]; /* by place in event_metric_at */
};
typedef void store_metric_visit(void *context, const struct store_metric_part *part);

/* Adds part, which lies behind it, to into. */
void store_metric_fold(struct store_metric_part *into, const struct store_metric_part *part);

/* Moves the place of a part to the middle of its steps, which lie behind the place `before` or
 * begin there: that of its last row becomes the new `before`. */
void store_metric_to_middle(struct store_metric_part *part, struct store_metric_part *before);

/* What a series has in the steps [from_step, to_step]. */
struct store_metric_ends {
    int64_t rows; /* at most most + 1: so many or more */
    int64_t first_step, last_step;
};
int store_metric_ends(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                      int64_t most, struct store_metric_ends *ends, struct error *e);

/* What it has of steps that ended at this Unix time or later: rows is 1, or 0 for none. Steps end
 * in order. */
int store_metric_ends_since(struct store *s, int64_t job_id, double t,
                            struct store_metric_ends *ends, struct error *e);

/* The steps of [from_step, to_step) in order, in parts: at least `parts` of them where there are
 * so many steps without gaps, and about 8 times that at most. 0 parts: step by step. */
int store_metric_parts(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                       int64_t parts, store_metric_visit *visit, void *context, struct error *e);

/* At most limit steps from from_step on. */
int store_metric_each(struct store *s, int64_t job_id, int64_t from_step, int64_t limit,
                      store_metric_visit *visit, void *context, struct error *e);

/*
 * A series at coarser scales: level l has a row for each 8^l steps that holds how many steps there
 * are and count, sum, minimum and maximum of each metric. Made from the level below in the
 * transaction that stores the steps, so a step that is done again after a resume counts once.
 */

struct sql;

/* Makes the buckets anew that hold steps of [first_step, last_step], inside the caller's
 * transaction. */
int store_buckets_update(struct sql *c, int64_t job_id, int64_t first_step, int64_t last_step,
                         struct error *e);

/* Makes all buckets of the jobs of an older database that have none, a transaction each. */
int store_buckets_fill(struct store *s, struct error *e);
