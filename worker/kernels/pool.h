/* Pooling over images (N, in, in, C), NHWC. The maximum is the first one in the order (ky, kx), as
 * in torch; NaN wins, padding never does. Each function computes a part of its result. The bf16
 * functions compute in fp32 and round once when they write; their channels are multiples of 32. */
#pragma once

#include <stdint.h>

#include "worker/kernels/bf16.h"
#include "worker/kernels/window.h"
#include "worker/team/parallel.h"

/* x (N, in, in, C) -> pixels [first, end), counted over the batch, of y (N, out, out, C) and of tap
 * (same shape; may be NULL): the tap ky * kernel + kx of the maximum. */
void pool_max(const struct window *w, const float *x, size_t first, size_t end, float *y,
              uint8_t *tap);

/* Lines [first, end) of the batch's dx (N, in, in, C): overwritten with dy of the maxima */
void pool_max_backward(const struct window *w, const float *dy, const uint8_t *tap, size_t first,
                       size_t end, float *dx);

/* x (N, pixels, C) -> a part of y (N, C) */
void pool_average(const float *x, const struct parallel_block *of, int pixels, size_t c, float *y);

/* A part of dx (N pixels, C) = dy (N, C) / pixels */
void pool_average_backward(const float *dy, const struct parallel_block *of, int pixels, size_t c,
                           float *dx);

void pool_bf16_max(const struct window *w, const bf16 *x, size_t first, size_t end, bf16 *y,
                   uint8_t *tap);
/* Pixels [first, end) of dx. */
void pool_bf16_max_backward(const struct window *w, const bf16 *dy, const uint8_t *tap,
                            size_t first, size_t end, bf16 *dx);

/* A part of y (N, C) */
void pool_bf16_average(const bf16 *x, const struct parallel_block *of, int pixels, size_t c,
                       float *y);
/* Pixels [first, end) of dx (N pixels, C) */
void pool_bf16_average_backward(const float *dy, size_t first, size_t end, int pixels, size_t c,
                                bf16 *dx);
