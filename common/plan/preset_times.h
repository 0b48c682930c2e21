/* Compares the published recipes (presets) by the time in which each reaches an accuracy on
 * ImageNet, on the same nodes and with the global batch it was published for. */
#pragma once

#include <jansson.h>

#include "common/plan/plan.h"

#define PRESET_TIMES_SIZE 224 /* image size for which node_speed is given */

struct preset_times {
    double target; /* top-1, 0 to 1 */
    int64_t nodes;
    double node_speed;     /* images/s of a node that trains ResNet-50 at 224; 0: not given */
    const json_t *changes; /* keys of a job that replace those of each preset; NULL: none */
    const struct plan_network *network; /* NULL: plan_network_default */
    struct plan_prices prices;
    /* Returns the measured speed of a job's network at its image size; zeroed: unknown */
    struct plan_speed (*speed)(const struct job_spec *spec, void *context);
    void *context;
};

/*
 * Returns an object for each preset with a published accuracy: the fastest first, then by
 * epochs_at_224 those whose time is unknown, then those without a plan, which have only preset,
 * source, top1, problem. epochs: until the published curve (top1_by_epoch) or, with LARS, MLPerf's
 * reference convergence points reach the target; else all epochs of the recipe epochs_at_224:
 * epochs with 224 x 224 pixels that have the same arithmetic images_per_sec, ttt_seconds,
 * node_hours, kwh: as in a plan, null if unknown problem: why the time is unknown, or null A size
 * without a measured speed takes that of 224 pixels, in proportion to the arithmetic.
 */
json_t *preset_times(const struct preset_times *t);
