/* What the evaluations of a run decide, by eval.monitor: which are the best, whether the run ends
 * early (eval.patience), and the rate of lr.decay "plateau". The same on all ranks. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"

struct monitor_best {
    size_t count; /* at most checkpoint.keep_best */
    int64_t steps[JOB_KEEP_BEST_MAX];
    double values[JOB_KEEP_BEST_MAX]; /* the best first; of equal ones the earlier */
};

/* Plain data. Numbers of evaluations are doubles, too. */
struct monitor {
    struct monitor_best best;
    double reference, reference_step; /* last value better by more than eval.min_delta; NAN: none */
    double waited;                    /* evaluations since then */
    double lr_scale;                  /* of the rate after warm-up: lr.gamma^k */
    double lr_reference;              /* NAN: none */
    double lr_waited, lr_cooldown;    /* evaluations */
};

const char *monitor_name(const struct job_spec *spec); /* "top1" or "loss" */

/* Adds an evaluation. rate: the learning rate that follows without a change, NAN: the run is still
 * in warm-up, which lr.decay "plateau" leaves out. Returns whether it is one of the best.
 * The rate is reduced as by PyTorch's ReduceLROnPlateau with threshold_mode "rel". */
bool monitor_add(struct monitor *m, const struct job_spec *spec, int64_t step, double value,
                 double rate);

/* Returns whether the run is to end: no improvement in eval.patience evaluations. */
bool monitor_is_over(const struct monitor *m, const struct job_spec *spec);

/* The member of state.json, a new reference; and back. NULL: a new run. Values of another
 * eval.monitor are not used. */
json_t *monitor_to_json(const struct monitor *m, const struct job_spec *spec);
void monitor_from_json(struct monitor *m, const json_t *json, const struct job_spec *spec);
