#include "worker/kernels/pool.h"

#include <math.h>
#include <string.h>

#include "worker/kernels/bf16_vec.h"
#include "worker/kernels/vec.h"
#include "worker/kernels/window.h"
#include "worker/team/dry_run.h"

#define POOL_INLINE static inline __attribute__((always_inline))

/* Maximum of VEC channels from x on over all taps: the first of the largest, or the last NaN; *tap
 * (may be NULL) gets its tap. Both stay in registers. load: a constant when inlined. */
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

/* Adds to a line of dx from a row of outputs, whose windows contain it as row ky. */
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

POOL_INLINE vec load_bf16(const void *at)
{
    return vec_load_bf16(at);
}

static void pool_bf16_max_of_vector(const struct window *w, const bf16 *x, struct window_hits ty,
                                    struct window_hits tx, bf16 *y, uint8_t *tap)
{
    vec_store_bf16(y, pool_max_of_vector(w, x, sizeof *x, load_bf16, ty, tx, tap), false);
}

void pool_bf16_max(const struct window *w, const bf16 *x, size_t first, size_t end, bf16 *y,
                   uint8_t *tap)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    size_t image = (size_t)w->in * (size_t)w->in * c;

    if (dry_run_moves_bf16((end - first) * c * (size_t)(w->kernel * w->kernel)))
        return;
    for (size_t i = first; i < end; i++) {
        struct window_hits ty = window_hits_at(w, (int)(i % pixels) / w->out),
                           tx = window_hits_at(w, (int)(i % pixels) % w->out);
        for (size_t j = 0; j < c; j += VEC)
            pool_bf16_max_of_vector(w, x + i / pixels * image + j, ty, tx, y + i * c + j,
                                    tap ? tap + i * c + j : NULL);
    }
}

static struct window_hits pool_bf16_windows_at(const struct window *w, int p)
{
    int reach = p + w->pad - w->kernel + 1;
    struct window_hits t = {reach > 0 ? (reach + w->stride - 1) / w->stride : 0,
                            (p + w->pad) / w->stride + 1, 0};
    if (t.end > w->out)
        t.end = w->out;
    return t;
}

static void pool_bf16_gather_vector(const struct window *w, int y, int x, const bf16 *dy,
                                    const uint8_t *tap, bf16 *dx)
{
    struct window_hits wy = pool_bf16_windows_at(w, y), wx = pool_bf16_windows_at(w, x);
    vec sum = {0};

    for (int oy = wy.first; oy < wy.end; oy++)
        for (int ox = wx.first; ox < wx.end; ox++) {
            int ky = y + w->pad - oy * w->stride, kx = x + w->pad - ox * w->stride;
            size_t at = (size_t)(oy * w->out + ox) * (size_t)w->channels;
            vec_int from = __builtin_convertvector(*(const vec_bytes *)(tap + at), vec_int);
            vec_int here = from == (vec_int){0} + (ky * w->kernel + kx);
            sum += (vec)((vec_int)vec_load_bf16(dy + at) & here);
        }
    vec_store_bf16(dx, sum, false);
}

void pool_bf16_max_backward(const struct window *w, const bf16 *dy, const uint8_t *tap,
                            size_t first, size_t end, bf16 *dx)
{
    size_t c = (size_t)w->channels, in = (size_t)w->in * (size_t)w->in,
           out = (size_t)w->out * (size_t)w->out;

    if (dry_run_moves_bf16((end - first) * c * (size_t)w->kernel))
        return;
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; j < c; j += VEC)
            pool_bf16_gather_vector(w, (int)(i % in) / w->in, (int)(i % in) % w->in,
                                    dy + i / in * out * c + j, tap + i / in * out * c + j,
                                    dx + i * c + j);
}

void pool_bf16_average(const bf16 *x, const struct parallel_block *of, int pixels, size_t c,
                       float *y)
{
    if (dry_run_moves_bf16(of->rows * of->columns * (size_t)pixels))
        return;
    for (size_t i = of->row; i < of->row + of->rows; i++)
        for (size_t j = of->column; j < of->column + of->columns; j += VEC) {
            const bf16 *from = x + i * (size_t)pixels * c + j;
            vec sum = {0};
            for (int p = 0; p < pixels; p++, from += c)
                sum += vec_load_bf16(from);
            vec_store(y + i * c + j, sum / vec_all((float)pixels));
        }
}

void pool_bf16_average_backward(const float *dy, size_t first, size_t end, int pixels, size_t c,
                                bf16 *dx)
{
    if (dry_run_moves_bf16((end - first) * c))
        return;
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; j < c; j += VEC)
            vec_store_bf16(dx + i * c + j,
                           vec_load(dy + i / (size_t)pixels * c + j) / vec_all((float)pixels),
                           false);
}
