/* The learning rate of a step: warm-up, then a decay. Sources: explain.c. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/job/job_spec.h"

/* In a phase (plan.h) with a batch of its own, a step is `pace` steps of the schedule, and its rate
 * that of the schedule times `factor`. */
struct lr_phase {
    int64_t step; /* the first */
    double at;    /* its place in the schedule */
    double pace, factor;
};

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
    /* None: step s of the run is step s of the schedule. */
    struct lr_phase phases[JOB_SIZES_MAX + 1];
    size_t phase_count;
    int64_t run_steps; /* with phases: steps of the run, where T are those of the schedule */
};

/* base x B/base_batch x factor with linear scaling; sqrt takes the root of B/base_batch, none 1. */
double lr_peak(const struct job_spec *spec, int64_t global_batch);

/* lr.start, or else lr.base, but not above the peak. */
double lr_start(const struct job_spec *spec, double peak);

/* The rate used by step s of the run (0-based). */
double lr_at(const struct lr_schedule *schedule, int64_t step);

/* The steps of the run, and the first of them at this place of the schedule or behind it. */
int64_t lr_run_steps(const struct lr_schedule *schedule);
int64_t lr_step_at(const struct lr_schedule *schedule, int64_t place);

/* The learning rate over a whole run, for those who draw it. */

/* [[step, rate], ...] with rising steps: all of a short run; of a longer one some hundred, among
 * them the first and the last, the end of the warm-up and both sides of each milestone. A new
 * reference. */
json_t *lr_curve(const struct lr_schedule *schedule);
