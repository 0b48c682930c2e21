#include "worker/kernels/window.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/team/dry_run.h"

static int window_tap_is_used(const struct window *w, int tap)
{
    for (int o = 0; o < w->out; o++) {
        int i = o * w->stride + tap - w->pad;
        if (i >= 0 && i < w->in)
            return 1;
    }
    return 0;
}

struct window window_make(int in, int channels, int kernel, int stride, int pad)
{
    struct window w = {
        .in = in, .channels = channels, .kernel = kernel, .stride = stride, .pad = pad};
    w.out = (in + 2 * pad - kernel) / stride + 1;
    w.tap_end = kernel;
    while (w.tap_first + 1 < kernel && !window_tap_is_used(&w, w.tap_first))
        w.tap_first++;
    while (w.tap_end - 1 > w.tap_first && !window_tap_is_used(&w, w.tap_end - 1))
        w.tap_end--;
    return w;
}

struct window_hits window_hits_at(const struct window *w, int o)
{
    struct window_hits t = {0, w->kernel, o * w->stride - w->pad};
    if (t.start < 0)
        t.first = -t.start;
    if (t.start + t.end > w->in)
        t.end = w->in - t.start;
    return t;
}

/* One kernel row of one output pixel: taps [first, end) hit pixels. */
struct tap_row {
    int iy, ix; /* position of the first remaining tap; may be outside the image */
    int first, end;
};

static struct tap_row window_tap_row(const struct window *w, int oy, int ox, int ky)
{
    struct tap_row t = {oy * w->stride + ky - w->pad, ox * w->stride + w->tap_first - w->pad, 0, 0};
    int taps = window_taps(w);

    if (t.iy < 0 || t.iy >= w->in)
        return t;
    t.first = t.ix < 0 ? -t.ix : 0;
    t.end = t.ix + taps > w->in ? w->in - t.ix : taps;
    if (t.end < t.first)
        t.end = t.first;
    return t;
}

void im2col(const struct window *w, const float *x, size_t row0, size_t rows, float *col)
{
    size_t c = (size_t)w->channels, taps = (size_t)window_taps(w), out = (size_t)w->out;
    size_t line = (size_t)w->in * c, image = line * (size_t)w->in;
    double piece = trace_begin();

    if (dry_run_moves(2 * rows * taps * taps * c))
        return;
    for (size_t r = row0; r < row0 + rows; r++) {
        size_t pixel = r % (out * out);
        int oy = (int)(pixel / out), ox = (int)(pixel % out);
        const float *base = x + r / (out * out) * image;
        for (int ky = w->tap_first; ky < w->tap_end; ky++, col += taps * c) {
            struct tap_row t = window_tap_row(w, oy, ox, ky);
            size_t before = (size_t)t.first * c, real = (size_t)(t.end - t.first) * c;
            if (before)
                memset(col, 0, before * sizeof *col);
            if (real)
                memcpy(col + before, base + (size_t)t.iy * line + (size_t)(t.ix + t.first) * c,
                       real * sizeof *col);
            if (before + real < taps * c)
                memset(col + before + real, 0, (taps * c - before - real) * sizeof *col);
        }
    }
    trace_part(piece, TRACE_IM2COL);
}

void col2im(const struct window *w, const float *col, size_t row0, size_t rows, float *dx)
{
    size_t c = (size_t)w->channels, taps = (size_t)window_taps(w), out = (size_t)w->out;
    size_t line = (size_t)w->in * c, image = line * (size_t)w->in;
    double piece = trace_begin();

    if (dry_run_moves(2 * rows * taps * taps * c))
        return;
    for (size_t r = row0; r < row0 + rows; r++) {
        size_t pixel = r % (out * out);
        int oy = (int)(pixel / out), ox = (int)(pixel % out);
        float *base = dx + r / (out * out) * image;
        for (int ky = w->tap_first; ky < w->tap_end; ky++, col += taps * c) {
            struct tap_row t = window_tap_row(w, oy, ox, ky);
            size_t real = (size_t)(t.end - t.first) * c;
            if (!real)
                continue;
            float *to = base + (size_t)t.iy * line + (size_t)(t.ix + t.first) * c;
            const float *from = col + (size_t)t.first * c;
            for (size_t i = 0; i < real; i++)
                to[i] += from[i];
        }
    }
    trace_part(piece, TRACE_IM2COL);
}
