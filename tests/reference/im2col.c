#include "tests/reference/reference.h"

/* The element of x that column `j` of row `r` shows, or -1 for padding. */
static ptrdiff_t source(const struct window *w, size_t r, size_t j)
{
    size_t out = (size_t)w->out, c = (size_t)w->channels, taps = (size_t)window_taps(w);
    int oy = (int)(r % (out * out) / out), ox = (int)(r % out);
    int ky = (int)(j / c / taps) + w->tap_first, kx = (int)(j / c % taps) + w->tap_first;
    int iy = oy * w->stride + ky - w->pad, ix = ox * w->stride + kx - w->pad;

    if (iy < 0 || iy >= w->in || ix < 0 || ix >= w->in)
        return -1;
    return (((ptrdiff_t)(r / (out * out)) * w->in + iy) * w->in + ix) * (ptrdiff_t)c +
           (ptrdiff_t)(j % c);
}

void im2col_reference(const struct window *w, const float *x, size_t row0, size_t rows, float *col)
{
    size_t columns = (size_t)window_taps(w) * (size_t)window_taps(w) * (size_t)w->channels;
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < columns; j++) {
            ptrdiff_t from = source(w, row0 + r, j);
            col[r * columns + j] = from < 0 ? 0 : x[from];
        }
}

void col2im_reference(const struct window *w, const float *col, size_t row0, size_t rows, float *dx)
{
    size_t columns = (size_t)window_taps(w) * (size_t)window_taps(w) * (size_t)w->channels;
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < columns; j++) {
            ptrdiff_t to = source(w, row0 + r, j);
            if (to >= 0)
                dx[to] += col[r * columns + j];
        }
}
