#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/job/job_spec.h"

/* In a phase (plan.h) with its own batch, a step is `pace` steps of the schedule, with its rate
 * times `factor`. */
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
    /* count 0: step s of the run is step s of the schedule. */
    struct lr_phase phases[JOB_SIZES_MAX + 1];
    size_t phase_count;
    int64_t run_steps; /* with phases: steps of the run, where T are those of the schedule */
};

/* base x factor x B/base_batch (lr.scaling linear), x its root (sqrt), or x 1 (none). */
double lr_peak(const struct job_spec *spec, int64_t global_batch);

/* lr.start, else lr.base, at most the peak. */
double lr_start(const struct job_spec *spec, double peak);

double lr_at(const struct lr_schedule *schedule, int64_t step);

/* The run's number of steps, and its first step at or after this place of the schedule. */
int64_t lr_run_steps(const struct lr_schedule *schedule);
int64_t lr_step_at(const struct lr_schedule *schedule, int64_t place);

/* [[step, rate], ...] by step, to draw: all steps of a short run, else some hundred, with the
 * first, the last, the end of warm-up and both sides of each milestone. A new reference. */
json_t *lr_curve(const struct lr_schedule *schedule);
