#include "worker/kernels/pool.h"

#include <math.h>
#include <string.h>

#include "worker/kernels/vec.h"

/* Taps of one direction that hit pixels for output position o: [first, end). */
struct taps {
    int first, end;
    int start; /* input position of tap 0 */
};

static struct taps taps_at(const struct window *w, int o)
{
    struct taps t = {0, w->kernel, o * w->stride - w->pad};
    if (t.start < 0)
        t.first = -t.start;
    if (t.start + t.end > w->in)
        t.end = w->in - t.start;
    return t;
}

/* VEC channels from x on, all taps: the maximum and its tap stay in registers. */
static void max_of_vector(const struct window *w, const float *x, struct taps ty, struct taps tx,
                          float *y, uint8_t *tap)
{
    vec best = vec_all(-INFINITY);
    vec_int best_tap = {0};

    for (int ky = ty.first; ky < ty.end; ky++)
        for (int kx = tx.first; kx < tx.end; kx++) {
            size_t pixel = (size_t)((ty.start + ky) * w->in + tx.start + kx);
            vec v = vec_load(x + pixel * (size_t)w->channels);
            vec_int larger = (vec_int)(v > best) | (vec_int)(v != v),
                    here = (vec_int){0} + (ky * w->kernel + kx);
            best = (vec)(((vec_int)v & larger) | ((vec_int)best & ~larger));
            best_tap = (here & larger) | (best_tap & ~larger);
        }
    vec_store(y, best);
    if (tap)
        *(vec_bytes *)tap = __builtin_convertvector(best_tap, vec_bytes);
}

static void max_of_channel(const struct window *w, const float *x, struct taps ty, struct taps tx,
                           float *y, uint8_t *tap)
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

void pool_max(const struct window *w, const float *x, int n, float *y, uint8_t *tap)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    size_t image = (size_t)w->in * (size_t)w->in * c;

    for (size_t i = 0; i < (size_t)n * pixels; i++) {
        struct taps ty = taps_at(w, (int)(i % pixels) / w->out),
                    tx = taps_at(w, (int)(i % pixels) % w->out);
        const float *from = x + i / pixels * image;
        size_t j = 0;
        for (; j + VEC <= c; j += VEC)
            max_of_vector(w, from + j, ty, tx, y + i * c + j, tap ? tap + i * c + j : NULL);
        for (; j < c; j++)
            max_of_channel(w, from + j, ty, tx, y + i * c + j, tap ? tap + i * c + j : NULL);
    }
}

/* dx += dy where the maximum came from this tap. */
static void send_back(const float *dy, const uint8_t *tap, uint8_t wanted, size_t c, float *dx)
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

void pool_max_backward(const struct window *w, const float *dy, const uint8_t *tap, int n,
                       float *dx)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    size_t image = (size_t)w->in * (size_t)w->in * c;

    memset(dx, 0, (size_t)n * image * sizeof *dx);
    for (size_t i = 0; i < (size_t)n * pixels; i++) {
        struct taps ty = taps_at(w, (int)(i % pixels) / w->out),
                    tx = taps_at(w, (int)(i % pixels) % w->out);
        float *to = dx + i / pixels * image;
        for (int ky = ty.first; ky < ty.end; ky++)
            for (int kx = tx.first; kx < tx.end; kx++)
                send_back(dy + i * c, tap + i * c, (uint8_t)(ky * w->kernel + kx), c,
                          to + (size_t)((ty.start + ky) * w->in + tx.start + kx) * c);
    }
}

void pool_average(const float *x, int n, int pixels, int c, float *y)
{
    for (int i = 0; i < n; i++, y += c) {
        memset(y, 0, (size_t)c * sizeof *y);
        for (int p = 0; p < pixels; p++, x += c)
            for (int j = 0; j < c; j++)
                y[j] += x[j];
        for (int j = 0; j < c; j++)
            y[j] /= (float)pixels;
    }
}

void pool_average_backward(const float *dy, int n, int pixels, int c, float *dx)
{
    for (int i = 0; i < n; i++, dy += c)
        for (int p = 0; p < pixels; p++, dx += c)
            for (int j = 0; j < c; j++)
                dx[j] = dy[j] / (float)pixels;
}
