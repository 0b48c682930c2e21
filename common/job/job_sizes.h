/*
 * model.image_size: one size, or sizes by epoch. Written as a number, as [[epoch, size], ...], or
 * as a ramp {"from", "to", "ramp": [first, last], "multiple"}: from the epoch `first` to the epoch
 * `last` the size rises in a straight line, looked at as each epoch begins and rounded to the
 * nearest multiple (FFCV's rn50_configs, get_resolution).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"

#define JOB_SIZES_MAX     16
#define JOB_SIZE_MULTIPLE 32 /* of a ramp that names none */

/* From the epoch on, until the next entry. */
struct job_size {
    double epoch;
    int64_t size; /* pixels */
};

/* Epochs rise from 0, sizes never shrink. */
struct job_sizes {
    struct job_size at[JOB_SIZES_MAX];
    size_t count; /* 0 or 1: one size for all */
    bool ramps;   /* how it was written */
    struct {
        int64_t from, to, multiple;
        double first, last; /* epochs */
    } ramp;
};

/* What a document may say, for a message: "a number ..., a list ..., or a ramp ...". */
void job_sizes_expects(double min, double max, char *text, size_t bytes);

/* Names everything that is wrong with a list or a ramp; a number is right within min and max.
 * False: something is, or it is none of the three and nothing was said. */
bool job_sizes_check(const json_t *value, const char *pointer, double min, double max,
                     struct problems *problems);

/* Of a right value. */
void job_sizes_read(const json_t *value, struct job_sizes *sizes);
json_t *job_sizes_to_json(const struct job_sizes *sizes);
