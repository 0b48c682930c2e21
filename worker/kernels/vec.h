/* Vectors of floats: what is the same with every instruction set. For the engine only. */
#pragma once

#include "worker/kernels/isa.h"

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

static inline float relu(float x)
{
    return x < 0 ? 0 : x;
}
