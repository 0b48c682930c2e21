/* For tests of numbers: reproducible noise, and a distance that says where it is largest. */
#pragma once

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"

/*
 * One of how many alike cases is taken. A build with sanitizers, a tenth as fast, looks at memory
 * and not at numbers: the last tensor is read and written by the code of the first.
 */
#ifdef __SANITIZE_ADDRESS__
enum { ONE_OF = 24 };
#else
enum { ONE_OF = 1 };
#endif

/* n floats in [-1, 1); the caller frees them. */
static inline float *noise(size_t n, int64_t seed)
{
    struct rng r = rng_stream(seed, 0, 0, RNG_SYNTHETIC);
    float *x = malloc((n ? n : 1) * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_range(&r, -1, 1);
    return x;
}

static inline float *copy_of(const float *x, size_t n)
{
    float *y = malloc((n ? n : 1) * sizeof *y);
    memcpy(y, x, n * sizeof *y);
    return y;
}

/* Every element within tolerance of the largest one of `want`. */
#define assert_close(have, want, n, tolerance, ...)                                                \
    do {                                                                                           \
        double largest_ = 1e-30;                                                                   \
        for (size_t i_ = 0; i_ < (size_t)(n); i_++)                                                \
            largest_ = fmax(largest_, fabs((double)(want)[i_]));                                   \
        for (size_t i_ = 0; i_ < (size_t)(n); i_++)                                                \
            if (!(fabs((double)(have)[i_] - (want)[i_]) <= (tolerance)*largest_)) {                \
                char where_[256];                                                                  \
                snprintf(where_, sizeof where_, __VA_ARGS__);                                      \
                cr_assert(0, "%s: element %zu is %.9g instead of %.9g", where_, i_,                \
                          (double)(have)[i_], (double)(want)[i_]);                                 \
            }                                                                                      \
    } while (0)
