/* model.image_size: a number, sizes by epoch [[epoch, size], ...], or a ramp {"from", "to", "ramp":
 * [first, last], "multiple"}, which is linear from epoch `first` to `last`, evaluated at the start
 * of each epoch and rounded to the nearest multiple (FFCV's rn50_configs, get_resolution). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"

#define JOB_SIZES_MAX     32
#define JOB_SIZE_MULTIPLE 32 /* default of a ramp */

struct job_size {
    double epoch;
    int64_t size; /* pixels */
};

/* Epochs increase from 0; sizes never decrease. */
struct job_sizes {
    struct job_size at[JOB_SIZES_MAX];
    size_t count; /* 0 or 1: one size for all epochs */
    bool ramps;   /* the document has a ramp */
    struct {
        int64_t from, to, multiple;
        double first, last; /* in epochs */
    } ramp;
};

void job_sizes_expects(double min, double max, char *text, size_t bytes);

/* Checks a list or a ramp and adds its problems; numbers must be from min to max. Returns false if
 * there was a problem, or if the value has none of the three forms, without a problem then. */
bool job_sizes_check(const json_t *value, const char *pointer, double min, double max,
                     struct problems *problems);

void job_sizes_read(const json_t *value, struct job_sizes *sizes);
json_t *job_sizes_to_json(const struct job_sizes *sizes);
