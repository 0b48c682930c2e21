/* Pooling over images (N, in, in, C), NHWC. The maximum is the first one in the order (ky, kx), as
 * in torch; NaN wins, padding never does. Each function computes a part of its result. Tensors are
 * void pointers, of floats here and of bf16 in the functions pool_bf16_... below, which compute in
 * fp32 and round once when they write. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "worker/kernels/window.h"
#include "worker/team/parallel.h"

/* x (N, in, in, C) -> pixels [first, end), counted over the batch, of y (N, out, out, C) and of tap
 * (same shape; may be NULL): the tap ky * kernel + kx of the maximum. */
void pool_max(const struct window *w, const void *x, size_t first, size_t end, void *y,
              uint8_t *tap);

/* Lines [first, end) of the batch's dx (N, in, in, C): overwritten with dy of the maxima */
void pool_max_backward(const struct window *w, const void *dy, const uint8_t *tap, size_t first,
                       size_t end, void *dx);

/* The low-pass filter [1 2 1] x [1 2 1] / 16 of a window of 3x3, with zeros around the image (Zhang
 * 2019, arXiv:1904.11486): x (N, in, in, C) -> pixels [first, end) of y (N, out, out, C), written
 * or added. Back, its gradient: x is dy (N, out, out, C), y is dx (N, in, in, C). */
void pool_blur(const struct window *w, bool back, const void *x, size_t first, size_t end, bool add,
               void *y);

/* x (N, pixels, C) -> a part of y (N, C), which is float */
void pool_average(const void *x, const struct parallel_block *of, int pixels, size_t c, float *y);

/* A part of dx (N pixels, C) = dy (N, C) / pixels */
void pool_average_backward(const float *dy, const struct parallel_block *of, int pixels, size_t c,
                           void *dx);

__typeof__(pool_max) pool_bf16_max;
__typeof__(pool_max_backward) pool_bf16_max_backward;
__typeof__(pool_blur) pool_bf16_blur;
__typeof__(pool_average) pool_bf16_average;
__typeof__(pool_average_backward) pool_bf16_average_backward;
