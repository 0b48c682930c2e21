/*
 * bf16: the upper 16 bits of a float (8 of exponent, 7 of fraction). Products of bf16 are summed in
 * fp32.
 *
 * The multiplication is chosen by the processor: AMX tiles (TDPBF16PS), AVX512_BF16 (VDPBF16PS), or
 * fp32 multiply-adds that emulate TDPBF16PS bit by bit. VDPBF16PS adds in another order, so it
 * gives other bits:
 *
 * - TDPBF16PS, for each 32 of k: e and o begin at 0; e = fma(a[2i], b[2i], e) and o = fma(a[2i+1],
 * b[2i+1], o) for i = 0 to 15; c = c + (e + o).
 *
 * - VDPBF16PS, for each pair: c = fma(a[2i+1], b[2i+1], c), then c = fma(a[2i], b[2i], c).
 *
 * Both round to nearest even, treat denormals as zero, and ignore MXCSR (Intel SDM, volume 2).
 * Emulation needs the modes that bf16_begin sets. The payload of a NaN is undefined.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/net/bf16_grid.h"

enum bf16_kind { BF16_EMULATED, BF16_DOT, BF16_AMX, BF16_KINDS };

enum bf16_kind bf16_kind(void);
const char *bf16_kind_name(enum bf16_kind kind); /* "emulated", "avx512_bf16", "amx_bf16" */

/* Selects a kind, for tests and measurements; false if the processor lacks it */
bool bf16_use(enum bf16_kind kind);

/* Whether the processor has VCVTNEPS2BF16 (`native` in bf16_vec.h). */
bool bf16_converts(void);

static inline float bf16_to_float(bf16 x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* As VCVTNEPS2BF16: nearest, ties to even; denormals become signed zeros, NaNs quiet ones */
static inline bf16 bf16_from_float(float f)
{
    uint32_t x;
    memcpy(&x, &f, sizeof x);
    uint32_t magnitude = x & 0x7fffffff;
    uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
    rounded = magnitude < 0x00800000 ? x >> 16 & 0x8000 : rounded;
    return (bf16)(magnitude > 0x7f800000 ? x >> 16 | 0x40 : rounded);
}

void bf16_from_floats(const float *from, size_t n, bf16 *to);
void bf16_to_floats(const bf16 *from, size_t n, float *to);

/* The right-hand matrix (k, n) of a product is in panels of BF16_COLUMNS columns, in chunks of
 * BF16_CHUNK rows, as two tiles of 16 columns by 16 pairs of rows: (n/32, k/32, 2, 16, 16, 2). */

/* Packs one chunk of fp32: (i, j) at from[i ld + j], or from[j ld + i]; zeros after `rows` rows */
void bf16_pack_floats(const float *from, size_t ld, bool transposed, size_t rows, bf16 *chunk);

/* Packs one chunk from 32 rows of bf16. */
void bf16_pack(const bf16 *from, size_t ld, bf16 *chunk);

/* (rows, c) to (c, rows), both multiples of 32; to_ld >= rows. */
void bf16_transpose(const bf16 *from, size_t from_ld, size_t rows, size_t c, bf16 *to,
                    size_t to_ld);

/* The left-hand matrix: element (i, k) of chunk q at a[i row + chunk[q] + k] */
struct bf16_product {
    const bf16 *a;
    size_t row;
    const size_t *chunk;
    size_t chunks;
    const bf16 *panel;
    size_t length; /* of each chunk, an even number: the panel has zeros after it. 0: BF16_CHUNK */
};

/* Enclose a thread's multiplications: set and release the processor's modes and tiles */
void bf16_begin(void);
void bf16_end(void);

/* C (rows <= BF16_ROWS, BF16_COLUMNS), fp32, = A B or += A B. */
void bf16_multiply(const struct bf16_product *p, size_t rows, float *c, size_t ldc, bool add);

/* Row i of a product becomes row pixel[i] of `to`, or i if pixel is NULL; none if negative. */
struct bf16_target {
    bf16 *to;
    size_t ld;
    const int32_t *pixel; /* as many as the rows rounded up to a multiple of BF16_HALF_TILE */
    bool add;
    bool exact; /* do not read beyond the last row of A */
};

/* A partially filled half of AMX's tiles takes as long as a full one. */
enum { BF16_HALF_TILE = BF16_ROWS / 2 };

/* Target = A B or += A B, rounded once, of any number of rows */
void bf16_multiply_rounded(const struct bf16_product *p, size_t rows, const struct bf16_target *t);
