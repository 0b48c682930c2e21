/* A square convolution or pooling window over images (N, in, in, C) -> (N, out, out, ...). Without
 * the taps that only see padding, [tap_first, tap_end) of [0, kernel) remains in each direction. */
#pragma once

#include <stddef.h>

struct window {
    int in, out; /* height and width */
    int channels;
    int kernel, stride, pad;
    int tap_first, tap_end;
};

struct window window_make(int in, int channels, int kernel, int stride, int pad);

static inline int window_taps(const struct window *w)
{
    return w->tap_end - w->tap_first;
}

/* Taps of one direction that hit pixels for an output position: [first, end) */
struct window_hits {
    int first, end;
    int start; /* input position of tap 0 */
};
struct window_hits window_hits_at(const struct window *w, int o);

/* Rows [row0, row0 + rows) of the im2col matrix. Row r = (image, oy, ox) has columns (ky, kx, c)
 * over the remaining taps, zero where a tap hits padding. */

/* x (N, in, in, C) -> col (rows, taps * taps * C) */
void im2col(const struct window *w, const float *x, size_t row0, size_t rows, float *col);

/* The transpose: adds col's rows to dx (N, in, in, C). */
void col2im(const struct window *w, const float *col, size_t row0, size_t rows, float *dx);
