/* Forecasts of when jobs end, slots become free and accuracy targets are met; pure arithmetic
 * without clock or store. Times are seconds from now; INFINITY: unknown. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_sizes.h"
#include "common/plan/predict.h"
#include "daemon/store/job_row.h"

/* Expected end of a job; {0, INFINITY, INFINITY}: unknown. */
struct forecast_end {
    double soonest, likely, latest;
};

/* Whether Slurm allocations follow one another until the job is done, so that a time limit does not
 * bound it. */
bool forecast_chains(const struct store_job *job);

/* Relative cost of the steps of a job whose image size or batch size changes. Zeroed: all steps
 * cost the same. */
struct forecast_pace {
    struct forecast_part {
        int64_t step;  /* first step (0-based) of this part */
        double images; /* images per step, relative to global_batch */
        double cost;   /* cost per image, relative to the largest image size */
    } parts[JOB_SIZES_MAX + 1];
    size_t count;
    double evaluation; /* cost per evaluated image, relative to the largest image size; 0: 1 */
};

/* Converts steps [from, to) to the equivalent number of steps at the largest image size. */
double forecast_steps(const struct forecast_pace *pace, double from, double to);

/* Forecasts when a running job completes `step` and any evaluation due after it, from the speed of
 * its newest step (job->step). Unknown if no speed is known. */
struct forecast_end forecast_until(const struct store_job *job, const struct forecast_pace *pace,
                                   double step);

/* Forecasts the end of a running job from its progress and speed, including the remaining
 * evaluations. Before its first step, uses the plan's prediction, or for a resumed job the steps
 * left after its checkpoint (job->step) at its earlier speed. Bounded by the time limit.
 * elapsed_seconds: since the attempt began. */
struct forecast_end forecast_running(const struct store_job *job, const struct forecast_pace *pace,
                                     double elapsed_seconds);

/* Forecasts the run time of a waiting job from its plan's prediction and its time limit. */
struct forecast_end forecast_queued(const struct store_job *job);

struct forecast_span {
    int64_t slots;
    double end;
};

/* Returns the first time at or after `from` when `wanted` of `total` slots are free. *by (may be
 * NULL) is set to the index of the span that ends then, or -1 if they are free at `from`. All spans
 * begin before `from`. */
double forecast_fit(const struct forecast_span *spans, size_t count, int64_t total, int64_t wanted,
                    double from, int *by);

/* Formats as "in less than a minute", "in about 40 min", "in about 3 h 20 min" or "in about 5
 * days". */
void forecast_words(double seconds, char *text, size_t bytes);

struct forecast_eval {
    double step, top1, t; /* t: Unix time at its end */
};

/* Returns the first evaluation that meets the target, or NULL. evals: ordered by step; top1 may be
 * NAN. */
const struct forecast_eval *forecast_target_met(const struct forecast_eval *evals, size_t count,
                                                double target);

/* Forecasts the step at which a run meets its target accuracy, no earlier than its newest
 * evaluation. The error falls as a power of the number of steps (Hestness et al. 2017, Deep
 * Learning Scaling is Predictable, Empirically), so a line on log-log scales is fitted to the
 * newest evaluations; the band is twice their scatter. A falling learning rate bends the line, so
 * job_estimate.c measures the accuracy of this forecast over stored runs. Returns false if there
 * are too few evaluations or they do not improve. */
bool forecast_target_step(const struct forecast_eval *evals, size_t count, double target,
                          struct plan_band *step);
