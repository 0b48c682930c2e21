/* Tensors of floats or of bf16, read and written as vectors of floats: one source for the kernels
 * of both precisions. For the engine only. `kind` is a constant after inlining. */
#pragma once

#include "worker/kernels/bf16.h"
#include "worker/kernels/bf16_vec.h"
#include "worker/team/dry_run.h"

/* NUMBER_NATIVE: bf16, rounded by the processor (bf16_converts), with the same bits */
enum number_kind { NUMBER_FLOAT, NUMBER_BF16, NUMBER_NATIVE };

#define NUMBER_INLINE ISA_INLINE

/* Calls an inline function, whose last argument is the kind, for tensors of bf16. */
#define NUMBER_BF16_CALL(function, ...)                                                            \
    (bf16_converts() ? function(__VA_ARGS__, NUMBER_NATIVE) : function(__VA_ARGS__, NUMBER_BF16))

/* Numbers i to i + VEC - 1. */
NUMBER_INLINE vec number_load(const void *tensor, size_t i, enum number_kind kind)
{
    return kind == NUMBER_FLOAT ? vec_load((const float *)tensor + i)
                                : vec_load_bf16((const bf16 *)tensor + i);
}

/* For a read soon. Into the second level: lines of rows at a power of two would displace each other
 * in the first. i may be beyond the end. */
NUMBER_INLINE void number_prefetch(const void *tensor, size_t i, enum number_kind kind)
{
    __builtin_prefetch((const char *)tensor + i * (kind == NUMBER_FLOAT ? 4 : 2), 0, 1);
}

NUMBER_INLINE void number_store(void *tensor, size_t i, vec v, enum number_kind kind)
{
    if (kind == NUMBER_FLOAT)
        vec_store((float *)tensor + i, v);
    else
        vec_store_bf16((bf16 *)tensor + i, v, kind == NUMBER_NATIVE);
}

NUMBER_INLINE float number_get(const void *tensor, size_t i, enum number_kind kind)
{
    return kind == NUMBER_FLOAT ? ((const float *)tensor)[i]
                                : bf16_to_float(((const bf16 *)tensor)[i]);
}

NUMBER_INLINE void number_set(void *tensor, size_t i, float x, enum number_kind kind)
{
    if (kind == NUMBER_FLOAT)
        ((float *)tensor)[i] = x;
    else
        ((bf16 *)tensor)[i] = bf16_from_float(x);
}
