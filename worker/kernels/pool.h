/*
 * Pooling over images (N, in, in, C), NHWC. The maximum is the first one in the order (ky, kx), as
 * torch takes it, and a NaN wins; padding never does.
 */
#pragma once

#include <stdint.h>

#include "worker/kernels/bf16.h"
#include "worker/kernels/window.h"
#include "worker/team/parallel.h"

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

/*
 * pool.h on bf16 tensors: what is read is widened, computed in fp32 as there, and rounded once when
 * it is written. Channels are multiples of 32. Each makes a part of its result.
 */

/* The pixels [first, end) of y, counted through the batch. tap NULL: not wanted. */
void pool_bf16_max(const struct window *w, const bf16 *x, size_t first, size_t end, bf16 *y,
                   uint8_t *tap);
/* The pixels [first, end) of dx. */
void pool_bf16_max_backward(const struct window *w, const bf16 *dy, const uint8_t *tap,
                            size_t first, size_t end, bf16 *dx);

/* A part of y (N, C) */
void pool_bf16_average(const bf16 *x, const struct parallel_block *of, int pixels, size_t c,
                       float *y);
/* The pixels [first, end) of dx (N pixels, C) */
void pool_bf16_average_backward(const float *dy, size_t first, size_t end, int pixels, size_t c,
                                bf16 *dx);
