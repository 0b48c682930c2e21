/*
 * The widest float vector of the target processor, by GCC's vector extensions: one source for
 * AVX-512, AVX2, SSE and others. Intrinsics only for what compilers translate badly (vec_math.h):
 * their header takes half a second to compile.
 *
 * For the engine only, which is compiled several times and chosen at run time. Other code calls
 * functions such as tile_columns().
 */
#pragma once

#ifndef TRAIND_ENGINE
#error "worker/kernels/vec.h is included outside of libtrainengine, where its width is not known"
#endif

#include <stddef.h>

#if defined __AVX512F__
#define VEC 16
#elif defined __AVX__
#define VEC 8
#else
#define VEC 4
#endif

/* aligned(4): unaligned loads and stores are allowed. */
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
    return x - (vec){0}; /* 0 + x would turn -0 into +0 */
}
