/* Vectors of bf16 as vectors of floats. For the engine only. `native`, a constant after inlining:
 * use the processor's own conversion (bf16_converts), with the same bits. */
#pragma once

#include "common/net/bf16_grid.h"
#include "worker/kernels/vec.h"

/* aligned(2): any address */
typedef uint16_t vec_bf16 __attribute__((vector_size(VEC * 2), aligned(2), may_alias));
typedef uint32_t vec_bits __attribute__((vector_size(VEC * 4), aligned(4), may_alias));

#define BF16_INLINE static inline __attribute__((always_inline))

BF16_INLINE vec vec_load_bf16(const bf16 *p)
{
    return (vec)(__builtin_convertvector(*(const vec_bf16 *)p, vec_bits) << 16);
}

/* a where mask is all ones, else b */
BF16_INLINE vec_bits vec_choose(vec_bits mask, vec_bits a, vec_bits b)
{
    return (a & mask) | (b & ~mask);
}

/* bf16_from_float of each element. */
BF16_INLINE void vec_store_bf16(bf16 *p, vec v, bool native)
{
#if VEC == 16
    if (native) {
        vec_bf16 y;
        __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(v));
        *(vec_bf16 *)p = y;
        return;
    }
#endif
    (void)native;
    vec_bits x = (vec_bits)v, magnitude = x & 0x7fffffff;
    vec_bits rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
    rounded = vec_choose((vec_bits)(magnitude < 0x00800000), x >> 16 & 0x8000, rounded);
    rounded = vec_choose((vec_bits)(magnitude > 0x7f800000), x >> 16 | 0x40, rounded);
    *(vec_bf16 *)p = __builtin_convertvector(rounded, vec_bf16);
}
