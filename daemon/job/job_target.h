/*
 * When a run will meet its target accuracy, by its own evaluations: the error of learning falls as
 * a power of the steps (Hestness et al. 2017, Deep Learning Scaling is Predictable, Empirically), a
 * line on log-log paper. The line is laid through the newest evaluations; the band is twice their
 * scatter around it. A learning rate that falls to its end bends the line, which is why measure.c
 * scores it over the runs in the store. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/plan/predict.h"

struct target_eval {
    double step, top1, t; /* t: Unix seconds, of its end */
};

/* evals: by step; top1 may be NAN. NULL: none was as good. */
const struct target_eval *target_met(const struct target_eval *evals, size_t count, double target);

/* The step at which the target will be met; false: the evaluations tell nothing, for they are too
 * few or do not get better. Not before the newest evaluation. */
bool target_step(const struct target_eval *evals, size_t count, double target,
                 struct plan_band *step);
