#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/job/job_spec.h"

/* A phase (plan.h) with its own batch: each of its steps counts as `pace` steps of the schedule,
 * and its rate is multiplied by `factor`. */
struct lr_phase {
    int64_t step; /* first step */
    double at;    /* position of that step in the schedule */
    double pace, factor;
};

struct lr_schedule {
    enum job_decay decay;
    double start, peak, end;
    double power;                                /* exponent of poly */
    int64_t warmup_steps, train_steps;           /* W, T */
    int64_t milestone_steps[JOB_MILESTONES_MAX]; /* step decay: the rate is multiplied by gamma at
                                                    each of these steps */
    size_t milestone_count;
    double gamma;       /* for step and exponential */
    double decay_steps; /* exponential: the rate is multiplied by gamma in this many steps */
    bool staircase;     /* exponential: multiply only at the end of each such period */
    double scale;       /* plateau: of the peak; 1 in a plan, changed by the evaluations of a run */
    /* Without phases, step s of the run is step s of the schedule. */
    struct lr_phase phases[JOB_SIZES_MAX + 1];
    size_t phase_count;
    int64_t run_steps; /* with phases: steps of the run, while T counts those of the schedule */
};

/* base x factor x B/base_batch (lr.scaling "linear"), x its root ("sqrt"), or x 1 ("none"). */
double lr_peak(const struct job_spec *spec, int64_t global_batch);

/* Returns lr.start, or else lr.base, but at most the peak. */
double lr_start(const struct job_spec *spec, double peak);

double lr_at(const struct lr_schedule *schedule, int64_t step);

/* Return the run's number of steps, and its first step at or after a position of the schedule. */
int64_t lr_run_steps(const struct lr_schedule *schedule);
int64_t lr_step_at(const struct lr_schedule *schedule, int64_t place);

/* Returns a new reference to [[step, rate], ...] by step, for a chart: all steps of a short run,
 * else some hundred, including the first and the last one, the end of warm-up and both sides of
 * each milestone. */
json_t *lr_curve(const struct lr_schedule *schedule);
