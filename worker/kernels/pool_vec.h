/* The maximum of a window for a vector of channels, of numbers of any kind: for the engine's own
 * files. */
#pragma once

#include <math.h>

#include "worker/kernels/vec.h"
#include "worker/kernels/window.h"

#define POOL_INLINE static inline __attribute__((always_inline))

/* VEC channels from x on, all taps: the first of the largest, or the last NaN; *tap (NULL: not
 * wanted) where each came from. Both stay in registers. load: a constant where this is inlined. */
POOL_INLINE vec pool_max_of_vector(const struct window *w, const void *x, size_t number_bytes,
                                   vec load(const void *at), struct window_hits ty,
                                   struct window_hits tx, uint8_t *tap)
{
    vec best = vec_all(-INFINITY);
    vec_int best_tap = {0};

    for (int ky = ty.first; ky < ty.end; ky++)
        for (int kx = tx.first; kx < tx.end; kx++) {
            size_t pixel = (size_t)((ty.start + ky) * w->in + tx.start + kx);
            vec v = load((const char *)x + pixel * (size_t)w->channels * number_bytes);
            vec_int larger = (vec_int)(v > best) | (vec_int)(v != v),
                    here = (vec_int){0} + (ky * w->kernel + kx);
            best = (vec)(((vec_int)v & larger) | ((vec_int)best & ~larger));
            best_tap = (here & larger) | (best_tap & ~larger);
        }
    if (tap)
        *(vec_bytes *)tap = __builtin_convertvector(best_tap, vec_bytes);
    return best;
}
