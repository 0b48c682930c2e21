/*
 * Pooling over images (N, in, in, C), NHWC. The maximum is the first one in the order (ky, kx), as
 * torch takes it, and a NaN wins; padding never does. The _reference twins do the same element by
 * element.
 */
#ifndef TRAIND_WORKER_KERNELS_POOL_H
#define TRAIND_WORKER_KERNELS_POOL_H

#include <stdint.h>

#include "worker/kernels/window.h"

/* x (n, in, in, C) -> y (n, out, out, C) and tap (same shape, NULL: not wanted): which tap, ky *
 * kernel + kx, was it. */
void pool_max(const struct window *w, const float *x, int n, float *y, uint8_t *tap);

/* dx (n, in, in, C) is overwritten with dy sent to where the maxima were. */
void pool_max_backward(const struct window *w, const float *dy, const uint8_t *tap, int n,
                       float *dx);

/* x (n, pixels, C) -> y (n, C) */
void pool_average(const float *x, int n, int pixels, int c, float *y);

/* dx (n, pixels, C) = dy (n, C) / pixels */
void pool_average_backward(const float *dy, int n, int pixels, int c, float *dx);

void pool_max_reference(const struct window *w, const float *x, int n, float *y, uint8_t *tap);
void pool_max_backward_reference(const struct window *w, const float *dy, const uint8_t *tap, int n,
                                 float *dx);
void pool_average_reference(const float *x, int n, int pixels, int c, float *y);

#endif
