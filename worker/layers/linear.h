/*
 * A fully connected layer: y = x W^T + b. x (n, in), W (out, in), b (out), y (n, out), row-major;
 * by OpenBLAS or the own tile, one thread a call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/rng.h"
#include "worker/team/parallel.h"

struct linear {
    size_t in, out;
    bool tile; /* by the own register tile, if `in` is a multiple of its columns: OpenBLAS keeps
                  some megabytes for each thread that calls it */
};

/* Each makes a part of its result, so that threads share it. */

/* Of y (n, out). */
void linear_forward(const struct linear *l, const float *w, const float *b, const float *x,
                    const struct parallel_block *of, float *y);

/* Of dw (out, in), from all n images, and of db with the part's first columns; overwritten, or
 * added to. */
void linear_weight_gradients(const struct linear *l, const float *x, const float *dy, size_t n,
                             const struct parallel_block *of, float *dw, float *db, bool add);

/* Of dx (n, in) = dy W, overwritten. */
void linear_input_gradient(const struct linear *l, const float *w, const float *dy,
                           const struct parallel_block *of, float *dx);

/*
 * Dropout (Srivastava et al. 2014), inverted: training sets a part of the values to 0 and divides
 * the others by 1 - rate, so that evaluation has nothing to do. Which ones are dropped is counted
 * from an image's stream of random numbers, hence the same in backward, in a resumed run and for
 * any number of threads, and no mask is kept.
 */

/* In place, of one image: of its values forward, of their gradients backward. 0 <= rate < 1. */
void dropout_apply(float *x, size_t count, double rate, struct rng stream);
