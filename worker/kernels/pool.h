/*
 * Pooling over images (N, in, in, C), NHWC. The maximum is the first one in the order (ky, kx), as
 * torch takes it, and a NaN wins; padding never does.
 */
#pragma once

#include <stdint.h>

#include "worker/team/parallel.h"
#include "worker/kernels/window.h"

/* Each makes a part of its result, so that threads share it. */

/* x (N, in, in, C) -> the pixels [first, end), counted through the batch, of y (N, out, out, C) and
 * of tap (same shape, NULL: not wanted): which tap, ky * kernel + kx, was it. */
void pool_max(const struct window *w, const float *x, size_t first, size_t end, float *y,
              uint8_t *tap);

/* The lines [first, end), counted through the batch, of dx (N, in, in, C): overwritten with dy sent
 * to where the maxima were. */
void pool_max_backward(const struct window *w, const float *dy, const uint8_t *tap, size_t first,
                       size_t end, float *dx);

/* x (N, pixels, C) -> a part of y (N, C) */
void pool_average(const float *x, const struct parallel_block *of, int pixels, size_t c, float *y);

/* A part of dx (N pixels, C) = dy (N, C) / pixels */
void pool_average_backward(const float *dy, const struct parallel_block *of, int pixels, size_t c,
                           float *dx);
