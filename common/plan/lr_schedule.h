/* The learning rate of a step: warm-up, then a decay. Sources: explain.c. */
#ifndef TRAIND_COMMON_PLAN_LR_SCHEDULE_H
#define TRAIND_COMMON_PLAN_LR_SCHEDULE_H

#include <stdint.h>

#include "common/job/job_spec.h"

struct lr_schedule {
    enum job_decay decay;
    double start, peak, end;
    double power;                                /* poly */
    int64_t warmup_steps, train_steps;           /* W, T */
    int64_t milestone_steps[JOB_MILESTONES_MAX]; /* step decay: x gamma from this step on */
    size_t milestone_count;
    double gamma;       /* step, exponential */
    double decay_steps; /* exponential: x gamma in this time */
    bool staircase;     /* exponential: only when all of that time is over */
};

/* base x B/base_batch x factor with linear scaling; sqrt takes the root of B/base_batch, none 1. */
double lr_peak(const struct job_spec *spec, int64_t global_batch);

/* lr.start, or else lr.base, but not above the peak. */
double lr_start(const struct job_spec *spec, double peak);

/* The rate used by step s (0-based, 0 <= s < train_steps). */
double lr_at(const struct lr_schedule *schedule, int64_t step);

#endif
