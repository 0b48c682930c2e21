/* Fully connected layer: y = x W^T + b. x (n, in), W (out, in), b (out), y (n, out), row-major,
 * single-threaded. Each function computes a part of its result. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/rng.h"
#include "worker/team/parallel.h"

struct linear {
    size_t in, out;
    bool tile; /* use the register tile if `in` is a multiple of its columns: OpenBLAS keeps some
                  megabytes per calling thread */
};

/* Part of y (n, out). */
void linear_forward(const struct linear *l, const float *w, const float *b, const float *x,
                    const struct parallel_block *of, float *y);

/* Part of dw (out, in) from all n images, and db for parts that start at column 0; overwrites or
 * adds. */
void linear_weight_gradients(const struct linear *l, const float *x, const float *dy, size_t n,
                             const struct parallel_block *of, float *dw, float *db, bool add);

/* Part of dx (n, in) = dy W; overwrites. */
void linear_input_gradient(const struct linear *l, const float *w, const float *dy,
                           const struct parallel_block *of, float *dx);

/* Inverted dropout (Srivastava et al. 2014): training divides the values it keeps by 1 - rate. The
 * choice is a function of an image's random stream, so that no mask is stored and it is the same in
 * backward, in a resumed run and for any number of threads. */

/* Processes one image in place: its values forward, its gradients backward. 0 <= rate < 1. */
void dropout_apply(float *x, size_t count, double rate, struct rng stream);
