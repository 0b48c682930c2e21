#include "worker/kernels/bf16/pool_bf16.h"

#include "worker/kernels/bf16/bf16_vec.h"
#include "worker/team/dry_run.h"
#include "worker/kernels/pool_vec.h"

POOL_INLINE vec load_bf16(const void *at)
{
    return vec_load_bf16(at);
}

static void bf16_max_of_vector(const struct window *w, const bf16 *x, struct window_hits ty,
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
            bf16_max_of_vector(w, x + i / pixels * image + j, ty, tx, y + i * c + j,
                               tap ? tap + i * c + j : NULL);
    }
}

/* Windows of one direction that see input position p: [first, end). */
static struct window_hits pool_bf16_windows_at(const struct window *w, int p)
{
    int reach = p + w->pad - w->kernel + 1;
    struct window_hits t = {reach > 0 ? (reach + w->stride - 1) / w->stride : 0,
                            (p + w->pad) / w->stride + 1, 0};
    if (t.end > w->out)
        t.end = w->out;
    return t;
}

/* VEC channels of one pixel: what the windows that see it send back. */
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
