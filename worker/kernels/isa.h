/*
 * What the kernels need of an instruction set: one section each, chosen by the compiler's -march.
 * A section has the vector length, the register tile of products (tile_gemm.c) and the few
 * functions that compilers translate badly from GCC's vector extensions; everything else is
 * written once, over these. doc/how-to-add-a-kernel.md shows how to add one.
 *
 * For the engine only, which is compiled once for each level and chosen at run time; other code
 * calls functions such as tile_columns().
 */
#pragma once

#ifndef TRAIND_ENGINE
#error "worker/kernels/isa.h is included outside of libtrainengine: vector lengths are not known"
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define ISA_INLINE static inline __attribute__((always_inline))

/* Types of vectors of `floats` elements. aligned: loads and stores at any address are allowed. */
#define ISA_VECTORS(floats)                                                                        \
    enum { VEC = (floats) };                                                                       \
    typedef float vec __attribute__((vector_size((floats)*4), aligned(4), may_alias));             \
    typedef int vec_int __attribute__((vector_size((floats)*4), aligned(4), may_alias));           \
    typedef uint32_t vec_bits __attribute__((vector_size((floats)*4), aligned(4), may_alias));     \
    typedef uint16_t vec_bf16 __attribute__((vector_size((floats)*2), aligned(2), may_alias));     \
    typedef unsigned char vec_bytes __attribute__((vector_size(floats), aligned(1), may_alias));

typedef float isa_float_pair __attribute__((aligned(2), may_alias));
typedef uint32_t isa_bits_pair __attribute__((aligned(2), may_alias));

/* Rows of the register tile, by vector length, for the counted engine too (tile_size.h). With two
 * vectors of columns, 2 x 14 sums, two columns and one row element fill the 32 registers of
 * AVX-512; other processors have 16. */
#define ISA_TILE_ROWS(vec) ((vec) == 16 ? 14 : 6)

/*
 * Functions of a section, on vectors:
 *
 * vec_where_positive(g, y)    g where y > 0, else 0
 * vec_relu(x)                 max(x, 0); NaN stays NaN
 * vec_sqrt(x)                 correctly rounded (IEEE 754)
 * vec_multiply_add(a, b, c)   a b + c, rounded once
 * vec_pick(p, i)              p[i] for each element of i, 0 <= i < VEC
 * vec_spread_pair(p)          the pair of bf16 at p, in each element. By a load: left to itself the
 *                             compiler splits the pair and broadcasts each half from an integer
 *                             register, at less than two thirds of the speed with AVX2
 * vec_widen(x)                each 16 bits as 32. GCC 12 splits a vector of 512 bits in two
 * vec_transpose(rows)         optional, with ISA_TRANSPOSES: transposes VEC vectors in place
 *
 * ISA_TILE_PAYS: whether the register tile is at least as fast as OpenBLAS.
 */

#if defined __AVX512F__ && defined __AVX512BW__

/* ---- AVX-512 (x86-64-v4) */

#include <immintrin.h>

ISA_VECTORS(16)
#define ISA_NAME "avx512"
#define ISA_TRANSPOSES
enum { ISA_TILE_PAYS = 1 }; /* 114 against 100 GFLOP/s */

ISA_INLINE vec vec_where_positive(vec g, vec y)
{
    return (vec)_mm512_maskz_mov_ps(_mm512_cmp_ps_mask((__m512)y, _mm512_setzero_ps(), _CMP_GT_OQ),
                                    (__m512)g);
}

ISA_INLINE vec vec_relu(vec x)
{
    /* returns the second operand if unordered */
    return (vec)_mm512_max_ps(_mm512_setzero_ps(), (__m512)x);
}

ISA_INLINE vec vec_sqrt(vec x)
{
    return (vec)_mm512_sqrt_ps((__m512)x);
}

ISA_INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

ISA_INLINE vec vec_pick(const float *p, vec_int i)
{
    return (vec)_mm512_permutexvar_ps((__m512i)i, _mm512_loadu_ps(p));
}

ISA_INLINE vec_bits vec_spread_pair(const uint16_t *p)
{
    return (vec_bits)_mm512_set1_ps(*(const isa_float_pair *)p);
}

ISA_INLINE vec_bits vec_widen(vec_bf16 x)
{
    return (vec_bits)_mm512_cvtepu16_epi32((__m256i)x);
}

static inline void vec_transpose(vec rows[16])
{
    __m512i r[16], t[16];

    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32((__m512i)rows[2 * i], (__m512i)rows[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32((__m512i)rows[2 * i], (__m512i)rows[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        rows[i] = (vec)_mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        rows[i + 8] = (vec)_mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    }
}

#elif defined __AVX2__ && defined __FMA__

/* ---- AVX2 with FMA (x86-64-v3) */

#include <immintrin.h>

ISA_VECTORS(8)
#define ISA_NAME "avx2"
#ifdef __clang__
enum { ISA_TILE_PAYS = 0 }; /* clang 14 spills its sums: 42 against 106 GFLOP/s */
#else
enum { ISA_TILE_PAYS = 1 }; /* as fast */
#endif

ISA_INLINE vec vec_where_positive(vec g, vec y)
{
    return (vec)((vec_int)g & (vec_int)(y > (vec){0}));
}

ISA_INLINE vec vec_relu(vec x)
{
    return (vec)_mm256_max_ps(_mm256_setzero_ps(), (__m256)x);
}

ISA_INLINE vec vec_sqrt(vec x)
{
    return (vec)_mm256_sqrt_ps((__m256)x);
}

ISA_INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

ISA_INLINE vec vec_pick(const float *p, vec_int i)
{
    return (vec)_mm256_permutevar8x32_ps(_mm256_loadu_ps(p), (__m256i)i);
}

ISA_INLINE vec_bits vec_spread_pair(const uint16_t *p)
{
    return (vec_bits)_mm256_set1_ps(*(const isa_float_pair *)p);
}

ISA_INLINE vec_bits vec_widen(vec_bf16 x)
{
    return (vec_bits)_mm256_cvtepu16_epi32((__m128i)x);
}

#else

/* ---- any other processor: SSE, NEON and others, without intrinsics */

ISA_VECTORS(4)
#ifdef __SSE4_2__
#define ISA_NAME "sse4.2"
#else
#define ISA_NAME "generic"
#endif
enum { ISA_TILE_PAYS = 0 };

ISA_INLINE vec vec_where_positive(vec g, vec y)
{
    return (vec)((vec_int)g & (vec_int)(y > (vec){0}));
}

ISA_INLINE vec vec_relu(vec x)
{
    return (vec)((vec_int)x & ~(vec_int)(x < (vec){0}));
}

ISA_INLINE vec vec_sqrt(vec x)
{
    for (int k = 0; k < VEC; k++)
        x[k] = sqrtf(x[k]);
    return x;
}

ISA_INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    for (int i = 0; i < VEC; i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}

ISA_INLINE vec vec_pick(const float *p, vec_int i)
{
    vec v;
    for (int k = 0; k < VEC; k++)
        v[k] = p[i[k]];
    return v;
}

ISA_INLINE vec_bits vec_spread_pair(const uint16_t *p)
{
    return (vec_bits){0} + *(const isa_bits_pair *)p;
}

ISA_INLINE vec_bits vec_widen(vec_bf16 x)
{
    return __builtin_convertvector(x, vec_bits);
}

#endif

enum { TILE_ROWS = ISA_TILE_ROWS(VEC), TILE_COLUMNS = 2 * VEC };
