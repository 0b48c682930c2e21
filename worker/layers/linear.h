/*
 * A fully connected layer: y = x W^T + b. x (n, in), W (out, in), b (out), y (n, out), row-major;
 * by OpenBLAS, one thread a call. The _reference twins do the same from the definition, in double.
 */
#ifndef TRAIND_WORKER_LAYERS_LINEAR_H
#define TRAIND_WORKER_LAYERS_LINEAR_H

#include <stdbool.h>
#include <stddef.h>

struct linear {
    size_t in, out;
};

void linear_forward(const struct linear *l, const float *w, const float *b, const float *x,
                    size_t n, float *y);

/* The rows [first, end) of dw and db from all n images; overwritten, or added to. */
void linear_weight_gradients(const struct linear *l, const float *x, const float *dy, size_t n,
                             size_t first, size_t end, float *dw, float *db, bool add);

/* dx (n, in) = dy W, overwritten. */
void linear_input_gradient(const struct linear *l, const float *w, const float *dy, size_t n,
                           float *dx);

void linear_forward_reference(const struct linear *l, const float *w, const float *b,
                              const float *x, size_t n, float *y);
void linear_backward_reference(const struct linear *l, const float *w, const float *x,
                               const float *dy, size_t n, float *dw, float *db, float *dx);

#endif
