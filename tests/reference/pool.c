#include "tests/reference/reference.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The element of x under a tap of output element i, or -1. */
static ptrdiff_t under(const struct window *w, size_t i, int tap)
{
    size_t c = (size_t)w->channels, out = (size_t)w->out;
    int oy = (int)(i / c / out % out), ox = (int)(i / c % out);
    int iy = oy * w->stride + tap / w->kernel - w->pad,
        ix = ox * w->stride + tap % w->kernel - w->pad;

    if (iy < 0 || iy >= w->in || ix < 0 || ix >= w->in)
        return -1;
    return (((ptrdiff_t)(i / c / out / out) * w->in + iy) * w->in + ix) * (ptrdiff_t)c +
           (ptrdiff_t)(i % c);
}

void pool_max_reference(const struct window *w, const float *x, int n, float *y, uint8_t *tap)
{
    size_t count = (size_t)n * (size_t)w->out * (size_t)w->out * (size_t)w->channels;
    for (size_t i = 0; i < count; i++) {
        y[i] = -INFINITY;
        tap[i] = 0;
        for (int t = 0; t < w->kernel * w->kernel; t++) {
            ptrdiff_t at = under(w, i, t);
            if (at >= 0 && (x[at] > y[i] || isnan(x[at]))) {
                y[i] = x[at];
                tap[i] = (uint8_t)t;
            }
        }
    }
}

void pool_max_backward_reference(const struct window *w, const float *dy, const uint8_t *tap, int n,
                                 float *dx)
{
    size_t c = (size_t)w->channels;
    memset(dx, 0, (size_t)n * (size_t)w->in * (size_t)w->in * c * sizeof *dx);
    for (size_t i = 0; i < (size_t)n * (size_t)w->out * (size_t)w->out * c; i++)
        dx[under(w, i, tap[i])] += dy[i];
}

static const double blur[9] = {1 / 16., 2 / 16., 1 / 16., 2 / 16., 4 / 16.,
                               2 / 16., 1 / 16., 2 / 16., 1 / 16.};

void pool_blur_reference(const struct window *w, const float *x, int n, float *y)
{
    size_t count = (size_t)n * (size_t)w->out * (size_t)w->out * (size_t)w->channels;
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int t = 0; t < 9; t++)
            sum += under(w, i, t) < 0 ? 0 : blur[t] * x[under(w, i, t)];
        y[i] = (float)sum;
    }
}

void pool_blur_backward_reference(const struct window *w, const float *dy, int n, float *dx)
{
    size_t c = (size_t)w->channels;
    memset(dx, 0, (size_t)n * (size_t)w->in * (size_t)w->in * c * sizeof *dx);
    for (size_t i = 0; i < (size_t)n * (size_t)w->out * (size_t)w->out * c; i++)
        for (int t = 0; t < 9; t++)
            if (under(w, i, t) >= 0)
                dx[under(w, i, t)] += (float)(blur[t] * dy[i]);
}

void pool_average_reference(const float *x, int n, int pixels, int c, float *y)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c; j++) {
            double sum = 0;
            for (int p = 0; p < pixels; p++)
                sum += x[((size_t)i * (size_t)pixels + (size_t)p) * (size_t)c + (size_t)j];
            y[(size_t)i * (size_t)c + (size_t)j] = (float)(sum / pixels);
        }
}
