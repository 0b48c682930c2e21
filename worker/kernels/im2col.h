/*
 * Rows of the im2col matrix: row r = (image, oy, ox) of the output, columns (ky, kx, c) over the
 * taps that the window keeps, zero where a tap falls on padding. row0 and rows may start and end
 * anywhere.
 */
#pragma once

#include "worker/kernels/window.h"

/* x (N, in, in, C) -> col (rows, taps * taps * C) */
void im2col(const struct window *w, const float *x, size_t row0, size_t rows, float *col);

/* The transpose: adds col's rows to dx (N, in, in, C). */
void col2im(const struct window *w, const float *col, size_t row0, size_t rows, float *dx);
