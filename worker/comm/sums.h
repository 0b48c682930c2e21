/* Sums of gradients of several ranks in fp32 and bf16, and conversions. OpenMP threads share large
 * ranges; the number of threads does not affect the result. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uint16_t __attribute__((may_alias)) sums_bf16_t;

/* Sets the number of threads for later calls by the calling thread; initially 1. */
void sums_use_threads(int threads);

/* Sets to[i] to the sum of from[0..ranks)[i] for i < n, pairwise: the largest power of two below
 * `ranks` first, then the rest. `to` may be one of `from`. */
void sums_fp32(const float *const *from, int ranks, size_t n, float *to);

/* Adds in fp32 in the order of the ranks, then rounds to bf16. */
void sums_bf16(const sums_bf16_t *const *from, int ranks, size_t n, sums_bf16_t *to);

void sums_copy(const float *from, float *to, size_t n);
/* Rounds to nearest even; a NaN stays a NaN. */
void sums_round(const float *from, sums_bf16_t *to, size_t n);
void sums_widen(const sums_bf16_t *from, float *to, size_t n);
