/* Functions on the vectors of vec.h that compilers translate badly, by intrinsics */
#pragma once

#include "worker/kernels/vec.h"

#include <math.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

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

/* max(x, 0); NaN stays NaN. */
static inline vec vec_relu(vec x)
{
#if defined __AVX512F__
    return (vec)_mm512_max_ps(_mm512_setzero_ps(),
                              (__m512)x); /* returns the second operand if unordered */
#elif defined __AVX__
    return (vec)_mm256_max_ps(_mm256_setzero_ps(), (__m256)x);
#else
    return (vec)((vec_int)x & ~(vec_int)(x < (vec){0}));
#endif
}

/* Correctly rounded (IEEE 754). */
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
