/*
 * The widest float vector of the processor this is compiled for, by GCC's vector extensions (clang
 * has them too), so that one text serves AVX-512, AVX2, SSE and others. What compilers translate
 * badly is made of intrinsics where it is needed, as in vec_math.h: their header takes the compiler
 * half a second to read.
 *
 * For the engine's own files: libtrainengine is compiled several times, and only at run time is it
 * known which of them is loaded. What others need to know of the width is asked by a function.
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
