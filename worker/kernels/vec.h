/*
 * The widest float vector of the processor this is compiled for, by GCC's vector extensions (clang
 * has them too), so that one text serves AVX-512, AVX2, SSE and others; the two operations that
 * compilers translate badly are intrinsics.
 *
 * For the engine's own files: libtrainengine is compiled several times, and only at run time is it
 * known which of them is loaded. What others need to know of the width is asked by a function.
 */
#ifndef TRAIND_WORKER_KERNELS_VEC_H
#define TRAIND_WORKER_KERNELS_VEC_H

#ifndef TRAIND_ENGINE
#error "worker/kernels/vec.h is included outside of libtrainengine, where its width is not known"
#endif

#include <math.h>
#include <stddef.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#if defined __AVX512F__
#define VEC 16
#elif defined __AVX__
#define VEC 8
#else
#define VEC 4
#endif

/* aligned(4): loads and stores through it may be anywhere. */
typedef float vec __attribute__((vector_size(VEC * 4), aligned(4), may_alias));
typedef int vec_int __attribute__((vector_size(VEC * 4), aligned(4), may_alias));

typedef unsigned char vec_bytes __attribute__((vector_size(VEC), aligned(1), may_alias));

static inline vec vec_load(const float *p)
{
    return *(const vec *)p;
}

static inline void vec_store(float *p, vec v)
{
    *(vec *)p = v;
}

static inline vec vec_all(float x)
{
    return x - (vec){0}; /* -0 would become +0 with 0 + x */
}

/* g where y > 0, else 0. */
static inline vec vec_where_positive(vec g, vec y)
{
#if defined __AVX512F__
    return (vec)_mm512_maskz_mov_ps(_mm512_cmp_ps_mask((__m512)y, _mm512_setzero_ps(), _CMP_GT_OQ),
                                    (__m512)g);
#else
    return (vec)((vec_int)g & (vec_int)(y > (vec){0}));
#endif
}

/* max(x, 0), where NaN stays NaN. */
static inline vec vec_relu(vec x)
{
#if defined __AVX512F__
    return (vec)_mm512_max_ps(_mm512_setzero_ps(), (__m512)x); /* the second operand if unordered */
#elif defined __AVX__
    return (vec)_mm256_max_ps(_mm256_setzero_ps(), (__m256)x);
#else
    return (vec)((vec_int)x & ~(vec_int)(x < (vec){0}));
#endif
}

/* Correctly rounded, as IEEE 754 wants it. */
static inline vec vec_sqrt(vec x)
{
#if defined __AVX512F__
    return (vec)_mm512_sqrt_ps((__m512)x);
#elif defined __AVX__
    return (vec)_mm256_sqrt_ps((__m256)x);
#else
    for (int k = 0; k < VEC; k++)
        x[k] = sqrtf(x[k]);
    return x;
#endif
}

static inline float relu(float x)
{
    return x < 0 ? 0 : x;
}

#endif
