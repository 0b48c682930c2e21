/*
 * The geometry of a square convolution or pooling window over images (N, in, in, C) -> (N, out,
 * out, ...). Taps that only ever see padding are left out: [tap_first, tap_end) is what remains of
 * [0, kernel) in each direction. At a 1x1 input, one of the nine taps of a padded 3x3 remains.
 */
#pragma once

#include <stddef.h>

struct window {
    int in, out; /* height and width */
    int channels;
    int kernel, stride, pad;
    int tap_first, tap_end;
};

struct window window_make(int in, int channels, int kernel, int stride, int pad);

/* Taps of one direction that remain. */
static inline int window_taps(const struct window *w)
{
    return w->tap_end - w->tap_first;
}

/* Taps of one direction that hit pixels for an output position: [first, end). */
struct window_hits {
    int first, end;
    int start; /* input position of tap 0 */
};
struct window_hits window_hits_at(const struct window *w, int o);

/*
 * Rows of the im2col matrix: row r = (image, oy, ox) of the output, columns (ky, kx, c) over the
 * taps that the window keeps, zero where a tap falls on padding. row0 and rows may start and end
 * anywhere.
 */

/* x (N, in, in, C) -> col (rows, taps * taps * C) */
void im2col(const struct window *w, const float *x, size_t row0, size_t rows, float *col);

/* The transpose: adds col's rows to dx (N, in, in, C). */
void col2im(const struct window *w, const float *col, size_t row0, size_t rows, float *dx);
