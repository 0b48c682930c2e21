/* Vectors of bf16 as vectors of floats. For the engine only. `native`, a constant after inlining:
 * use the processor's own conversion (bf16_converts), with the same bits. */
#pragma once

#include <stdbool.h>

#include "common/net/bf16_grid.h"
#include "worker/kernels/vec.h"

#define BF16_INLINE ISA_INLINE

BF16_INLINE vec vec_load_bf16(const bf16 *p)
{
    return (vec)(vec_widen(*(const vec_bf16 *)p) << 16);
}

/* a where mask is all ones, else b */
BF16_INLINE vec_bits vec_choose(vec_bits mask, vec_bits a, vec_bits b)
{
    return (a & mask) | (b & ~mask);
}

/* bf16_from_float of each element. */
BF16_INLINE vec_bf16 vec_to_bf16(vec v, bool native)
{
#ifdef __AVX512F__
    if (native) {
        vec_bf16 y;
        __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(v));
        return y;
    }
#endif
    (void)native;
    vec_bits x = (vec_bits)v, magnitude = x & 0x7fffffff;
    vec_bits rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
    rounded = vec_choose((vec_bits)(magnitude < 0x00800000), x >> 16 & 0x8000, rounded);
    rounded = vec_choose((vec_bits)(magnitude > 0x7f800000), x >> 16 | 0x40, rounded);
    return __builtin_convertvector(rounded, vec_bf16);
}

BF16_INLINE void vec_store_bf16(bf16 *p, vec v, bool native)
{
    *(vec_bf16 *)p = vec_to_bf16(v, native);
}

/* Each element of a with that of b, as a pair of bf16. */
BF16_INLINE vec_bits vec_bf16_pairs(vec a, vec b, bool native)
{
    return vec_widen(vec_to_bf16(a, native)) | vec_widen(vec_to_bf16(b, native)) << 16;
}
