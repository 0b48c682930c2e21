#include "worker/kernels/pool.h"

#include <math.h>
#include <string.h>

#include "worker/team/dry_run.h"
#include "worker/kernels/pool_vec.h"

POOL_INLINE vec load_floats(const void *at)
{
    return vec_load(at);
}

static void pool_max_of_lanes(const struct window *w, const float *x, struct window_hits ty,
                              struct window_hits tx, float *y, uint8_t *tap)
{
    vec_store(y, pool_max_of_vector(w, x, sizeof *x, load_floats, ty, tx, tap));
}

static void pool_max_of_channel(const struct window *w, const float *x, struct window_hits ty,
                                struct window_hits tx, float *y, uint8_t *tap)
{
    uint8_t best = 0;
    *y = -INFINITY;
    for (int ky = ty.first; ky < ty.end; ky++)
        for (int kx = tx.first; kx < tx.end; kx++) {
            float v = x[(size_t)((ty.start + ky) * w->in + tx.start + kx) * (size_t)w->channels];
            if (v > *y || v != v) {
                *y = v;
                best = (uint8_t)(ky * w->kernel + kx);
            }
        }
    if (tap)
        *tap = best;
}

void pool_max(const struct window *w, const float *x, size_t first, size_t end, float *y,
              uint8_t *tap)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    size_t image = (size_t)w->in * (size_t)w->in * c;

    if (dry_run_moves((end - first) * c * (size_t)(w->kernel * w->kernel)))
        return;
    for (size_t i = first; i < end; i++) {
        struct window_hits ty = window_hits_at(w, (int)(i % pixels) / w->out),
                           tx = window_hits_at(w, (int)(i % pixels) % w->out);
        const float *from = x + i / pixels * image;
        size_t j = 0;
        for (; j + VEC <= c; j += VEC)
            pool_max_of_lanes(w, from + j, ty, tx, y + i * c + j, tap ? tap + i * c + j : NULL);
        for (; j < c; j++)
            pool_max_of_channel(w, from + j, ty, tx, y + i * c + j, tap ? tap + i * c + j : NULL);
    }
}

/* dx += dy where the maximum came from this tap. */
static void pool_send_back(const float *dy, const uint8_t *tap, uint8_t wanted, size_t c, float *dx)
{
    size_t j = 0;
    for (; j + VEC <= c; j += VEC) {
        vec_int from = __builtin_convertvector(*(const vec_bytes *)(tap + j), vec_int);
        vec_int here = from == (vec_int){0} + wanted;
        vec_store(dx + j, vec_load(dx + j) + (vec)((vec_int)vec_load(dy + j) & here));
    }
    for (; j < c; j++)
        dx[j] += tap[j] == wanted ? dy[j] : 0;
}

/* To a line of dx from a row of outputs that sees it by its taps ky. */
static void pool_send_row_back(const struct window *w, const float *dy, const uint8_t *tap, int ky,
                               float *dx)
{
    size_t c = (size_t)w->channels;

    for (int o = 0; o < w->out; o++, dy += c, tap += c) {
        struct window_hits tx = window_hits_at(w, o);
        for (int kx = tx.first; kx < tx.end; kx++)
            pool_send_back(dy, tap, (uint8_t)(ky * w->kernel + kx), c,
                           dx + (size_t)(tx.start + kx) * c);
    }
}

void pool_max_backward(const struct window *w, const float *dy, const uint8_t *tap, size_t first,
                       size_t end, float *dx)
{
    size_t c = (size_t)w->channels, in = (size_t)w->in, out = (size_t)w->out;

    if (dry_run_moves((end - first) * in * c * (size_t)(w->kernel * w->kernel)))
        return;
    memset(dx + first * in * c, 0, (end - first) * in * c * sizeof *dx);
    for (size_t line = first; line < end; line++)
        for (int o = 0; o < w->out; o++) {
            int ky = (int)(line % in) + w->pad - o * w->stride;
            size_t from = (line / in * out + (size_t)o) * out * c;
            if (ky >= 0 && ky < w->kernel)
                pool_send_row_back(w, dy + from, tap + from, ky, dx + line * in * c);
        }
}

void pool_average(const float *x, const struct parallel_block *of, int pixels, size_t c, float *y)
{
    if (dry_run_moves(of->rows * of->columns * (size_t)pixels))
        return;
    for (size_t i = of->row; i < of->row + of->rows; i++) {
        const float *from = x + i * (size_t)pixels * c + of->column;
        float *to = y + i * c + of->column;
        memset(to, 0, of->columns * sizeof *y);
        for (int p = 0; p < pixels; p++, from += c)
            for (size_t j = 0; j < of->columns; j++)
                to[j] += from[j];
        for (size_t j = 0; j < of->columns; j++)
            to[j] /= (float)pixels;
    }
}

void pool_average_backward(const float *dy, const struct parallel_block *of, int pixels, size_t c,
                           float *dx)
{
    if (dry_run_moves(of->rows * of->columns))
        return;
    for (size_t i = of->row; i < of->row + of->rows; i++) {
        const float *from = dy + i / (size_t)pixels * c + of->column;
        float *to = dx + i * c + of->column;
        for (size_t j = 0; j < of->columns; j++)
            to[j] = from[j] / (float)pixels;
    }
}
