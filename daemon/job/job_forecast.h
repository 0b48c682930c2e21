/* When jobs end, slots become free and targets are met: arithmetic without clock or store. Times
 * are seconds from now; INFINITY: not known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_sizes.h"
#include "common/plan/predict.h"
#include "daemon/store/job_row.h"

/* When a job is expected to have ended; {0, INFINITY, INFINITY}: not known. */
struct forecast_end {
    double soonest, likely, latest;
};

/* One allocation follows another until the job is done: a time limit does not bound it. */
bool forecast_chains(const struct store_job *job);

/* Relative lengths of the steps of a job whose images grow or whose batches shrink. Zeroed: all
 * steps alike. */
struct forecast_pace {
    struct forecast_part {
        int64_t step;  /* from this one on (0-based), until the next part */
        double images; /* of a step, by the job's global_batch */
        double cost;   /* of an image, by one of the largest size */
    } parts[JOB_SIZES_MAX + 1];
    size_t count;
    double evaluation; /* cost of an evaluated image, by one of the largest size; 0: 1 */
};

/* Steps [from, to) as steps of the largest size. */
double forecast_steps(const struct forecast_pace *pace, double from, double to);

/* Until a running job has done this step, and the evaluation after it if one is due, by the speed
 * of its newest step (job->step). Unknown without a speed. */
struct forecast_end forecast_until(const struct store_job *job, const struct forecast_pace *pace,
                                   double step);

/* Of a running job: by its progress and speed, with the remaining evaluations; before its first
 * step by its plan's prediction, of a resumed one by what remains after its checkpoint (job->step),
 * at the speed it had. A time limit bounds it. elapsed_seconds: since its attempt began. */
struct forecast_end forecast_running(const struct store_job *job, const struct forecast_pace *pace,
                                     double elapsed_seconds);

/* How long a job that waits will run, by its plan's prediction and its time limit. */
struct forecast_end forecast_queued(const struct store_job *job);

struct forecast_span {
    int64_t slots;
    double end;
};

/* The first time from `from` on at which `wanted` of `total` slots are free. *by (may be NULL) is
 * the index of the span that ends then, -1 if they are free at `from`. Spans begin before `from`.
 */
double forecast_fit(const struct forecast_span *spans, size_t count, int64_t total, int64_t wanted,
                    double from, int *by);

/* "in less than a minute", "in about 40 min", "in about 3 h 20 min", "in about 5 days". */
void forecast_words(double seconds, char *text, size_t bytes);

struct forecast_eval {
    double step, top1, t; /* t: Unix seconds, of its end */
};

/* The first that is as good; NULL: none. evals: by step; top1 may be NAN. */
const struct forecast_eval *forecast_target_met(const struct forecast_eval *evals, size_t count,
                                                double target);

/* The step at which a run will meet its target accuracy, not before its newest evaluation: the
 * error of learning falls as a power of the steps (Hestness et al. 2017, Deep Learning Scaling is
 * Predictable, Empirically). A line on log-log scales is fitted to the newest evaluations; the band
 * is twice their scatter. A falling learning rate bends the line, which is why job_estimate.c
 * judges it over stored runs. False: the evaluations are too few, or do not improve. */
bool forecast_target_step(const struct forecast_eval *evals, size_t count, double target,
                          struct plan_band *step);
