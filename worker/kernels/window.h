/* Geometry of a square convolution or pooling window over images (N, in, in, C) -> (N, out, out,
 * ...). Taps that only see padding are excluded: [tap_first, tap_end) remains of [0, kernel) in
 * each direction. At a 1x1 input, one of the nine taps of a padded 3x3 remains. */
#pragma once

#include <stddef.h>

struct window {
    int in, out; /* height and width */
    int channels;
    int kernel, stride, pad;
    int tap_first, tap_end;
};

struct window window_make(int in, int channels, int kernel, int stride, int pad);

/* Remaining taps per direction. */
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

/* Rows [row0, row0 + rows) of the im2col matrix. Row r = (image, oy, ox) of the output has columns
 * (ky, kx, c) over the remaining taps, zero where a tap hits padding. */

/* x (N, in, in, C) -> col (rows, taps * taps * C) */
void im2col(const struct window *w, const float *x, size_t row0, size_t rows, float *col);

/* The transpose: adds col's rows to dx (N, in, in, C). */
void col2im(const struct window *w, const float *col, size_t row0, size_t rows, float *dx);
