/*
 * pool.h on bf16 tensors: what is read is widened, computed in fp32 as there, and rounded once when
 * it is written. Channels are multiples of 32. Each makes a part of its result.
 */
#pragma once

#include "worker/kernels/bf16/bf16.h"
#include "worker/team/parallel.h"
#include "worker/kernels/window.h"

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
