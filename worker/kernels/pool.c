#include "worker/kernels/pool.h"

#include <math.h>
#include <string.h>

#include "worker/kernels/numbers.h"
#include "worker/kernels/window.h"

/* The maximum of VEC channels from number `at` of x on over all taps: the first of the largest, or
 * the last NaN; *tap (may be NULL) gets its tap. Both stay in registers. */
NUMBER_INLINE vec pool_max_of_vector(const struct window *w, int kernel, const void *x, size_t at,
                                     struct window_hits ty, struct window_hits tx, uint8_t *tap,
                                     enum number_kind kind)
{
    vec best = vec_all(-INFINITY);
    vec_int best_tap = {0};

    for (int ky = ty.first; ky < ty.end; ky++)
        for (int kx = tx.first; kx < tx.end; kx++) {
            size_t pixel = (size_t)((ty.start + ky) * w->in + tx.start + kx);
            vec v = number_load(x, at + pixel * (size_t)w->channels, kind);
            vec_int larger = (vec_int)(v > best) | (vec_int)(v != v),
                    here = (vec_int){0} + (ky * kernel + kx);
            best = (vec)(((vec_int)v & larger) | ((vec_int)best & ~larger));
            best_tap = (here & larger) | (best_tap & ~larger);
        }
    if (tap)
        *(vec_bytes *)tap = __builtin_convertvector(best_tap, vec_bytes);
    return best;
}

NUMBER_INLINE float pool_max_of_channel(const struct window *w, const void *x, size_t at,
                                        struct window_hits ty, struct window_hits tx, uint8_t *tap,
                                        enum number_kind kind)
{
    float best = -INFINITY;
    uint8_t best_tap = 0;

    for (int ky = ty.first; ky < ty.end; ky++)
        for (int kx = tx.first; kx < tx.end; kx++) {
            size_t pixel = (size_t)((ty.start + ky) * w->in + tx.start + kx);
            float v = number_get(x, at + pixel * (size_t)w->channels, kind);
            if (v > best || v != v) {
                best = v;
                best_tap = (uint8_t)(ky * w->kernel + kx);
            }
        }
    if (tap)
        *tap = best_tap;
    return best;
}

NUMBER_INLINE void pool_max_of(const struct window *w, const void *x, size_t first, size_t end,
                               void *y, uint8_t *tap, enum number_kind kind)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    size_t image = (size_t)w->in * (size_t)w->in * c;

    for (size_t i = first; i < end; i++) {
        struct window_hits ty = window_hits_at(w, (int)(i % pixels) / w->out),
                           tx = window_hits_at(w, (int)(i % pixels) % w->out);
        size_t from = i / pixels * image, to = i * c, j = 0;
        bool whole = w->kernel == 3 && ty.end - ty.first == 3 && tx.end - tx.first == 3;
        for (; j + VEC <= c; j += VEC) {
            uint8_t *taps = tap ? tap + to + j : NULL;
            vec best =
                whole /* loops of constant length */
                    ? pool_max_of_vector(w, 3, x, from + j, (struct window_hits){0, 3, ty.start},
                                         (struct window_hits){0, 3, tx.start}, taps, kind)
                    : pool_max_of_vector(w, w->kernel, x, from + j, ty, tx, taps, kind);
            number_store(y, to + j, best, kind);
        }
        for (; j < c; j++)
            number_set(y, to + j,
                       pool_max_of_channel(w, x, from + j, ty, tx, tap ? tap + to + j : NULL, kind),
                       kind);
    }
}

void pool_max(const struct window *w, const void *x, size_t first, size_t end, void *y,
              uint8_t *tap)
{
    if (!dry_run_moves((end - first) * (size_t)(w->channels * w->kernel * w->kernel)))
        pool_max_of(w, x, first, end, y, tap, NUMBER_FLOAT);
}

void pool_bf16_max(const struct window *w, const void *x, size_t first, size_t end, void *y,
                   uint8_t *tap)
{
    if (!dry_run_moves_bf16((end - first) * (size_t)(w->channels * w->kernel * w->kernel)))
        NUMBER_BF16_CALL(pool_max_of, w, x, first, end, y, tap);
}

/* Windows [first, end) contain pixel p of a line. */
static struct window_hits pool_windows_at(const struct window *w, int p)
{
    int reach = p + w->pad - w->kernel + 1;
    struct window_hits t = {reach > 0 ? (reach + w->stride - 1) / w->stride : 0,
                            (p + w->pad) / w->stride + 1, 0};
    if (t.end > w->out)
        t.end = w->out;
    return t;
}

/* Of windows in rows and columns; (top, left): the tap of the first one that has the pixel */
NUMBER_INLINE vec pool_gather_vector(int kernel, int stride, int top, int left, int rows,
                                     int columns, const void *dy, const uint8_t *tap, size_t at,
                                     size_t line, size_t c, enum number_kind kind)
{
    vec sum = {0};

    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns; k++) {
            int wanted = (top - i * stride) * kernel + left - k * stride;
            size_t from = at + (size_t)i * line + (size_t)k * c;
            vec_bf16 half = __builtin_convertvector(*(const vec_bytes *)(tap + from), vec_bf16);
            vec_int taps = (vec_int)vec_widen(half); /* at once, GCC 12 takes them one by one */
            sum += (vec)((vec_int)number_load(dy, from, kind) & (taps == (vec_int){0} + wanted));
        }
    return sum;
}

/* Pixel (y, x) of dx, all channels: the gradients of the windows whose maximum it is. wy: windows
 * of its line */
NUMBER_INLINE void pool_gather_pixel(const struct window *w, struct window_hits wy, int y, int x,
                                     const void *dy, const uint8_t *tap, size_t from, void *dx,
                                     size_t to, enum number_kind kind)
{
    struct window_hits wx = pool_windows_at(w, x);
    size_t c = (size_t)w->channels, j = 0;

    int top = y + w->pad - wy.first * w->stride, left = x + w->pad - wx.first * w->stride;
    int rows = wy.end - wy.first, columns = wx.end - wx.first;
    size_t line = (size_t)w->out * c,
           corner = from + (size_t)wy.first * line + (size_t)wx.first * c;
    bool whole = w->kernel == 3 && w->stride == 1 && rows == 3 && columns == 3;
    for (; j + VEC <= c; j += VEC)
        number_store(dx, to + j,
                     whole
                         ? pool_gather_vector(3, 1, 2, 2, 3, 3, dy, tap, corner + j, line, c, kind)
                         : pool_gather_vector(w->kernel, w->stride, top, left, rows, columns, dy,
                                              tap, corner + j, line, c, kind),
                     kind);
    for (; j < c; j++) {
        float sum = 0;
        for (int oy = wy.first; oy < wy.end; oy++)
            for (int ox = wx.first; ox < wx.end; ox++) {
                int wanted =
                    (y + w->pad - oy * w->stride) * w->kernel + x + w->pad - ox * w->stride;
                size_t at = from + (size_t)(oy * w->out + ox) * c + j;
                sum += tap[at] == wanted ? number_get(dy, at, kind) : 0;
            }
        number_set(dx, to + j, sum, kind);
    }
}

NUMBER_INLINE void pool_gather_lines(const struct window *w, const void *dy, const uint8_t *tap,
                                     size_t first, size_t end, void *dx, enum number_kind kind)
{
    size_t c = (size_t)w->channels, in = (size_t)w->in, out = (size_t)w->out * (size_t)w->out;

    for (size_t line = first; line < end; line++) {
        int y = (int)(line % in);
        struct window_hits wy = pool_windows_at(w, y);
        for (size_t x = 0; x < in; x++)
            pool_gather_pixel(w, wy, y, (int)x, dy, tap, line / in * out * c, dx,
                              (line * in + x) * c, kind);
    }
}

void pool_max_backward(const struct window *w, const void *dy, const uint8_t *tap, size_t first,
                       size_t end, void *dx)
{
    if (!dry_run_moves((end - first) * (size_t)(w->in * w->channels * w->kernel * w->kernel)))
        pool_gather_lines(w, dy, tap, first, end, dx, NUMBER_FLOAT);
}

void pool_bf16_max_backward(const struct window *w, const void *dy, const uint8_t *tap,
                            size_t first, size_t end, void *dx)
{
    if (!dry_run_moves_bf16((end - first) * (size_t)(w->in * w->channels * w->kernel)))
        NUMBER_BF16_CALL(pool_gather_lines, w, dy, tap, first, end, dx);
}

/* ---- low-pass filter: a pixel of the result is a weighted sum of up to 3x3 pixels */

struct pool_taps {
    int first, count; /* pixels in one direction */
    float weight[3];
};

/* Forward: the pixels of window `at` that are in the image. Back: the windows that contain pixel
 * `at`. */
static struct pool_taps pool_blur_taps(const struct window *w, int at, bool back)
{
    struct window_hits h = back ? pool_windows_at(w, at) : window_hits_at(w, at);
    struct pool_taps t = {h.start + h.first, h.end - h.first, {0}};

    for (int k = 0; k < t.count; k++) {
        int tap = back ? at + w->pad - (t.first + k) * w->stride : h.first + k;
        t.weight[k] = tap == 1 ? 0.5F : 0.25F;
    }
    return t;
}

NUMBER_INLINE void pool_blur_pixel(const struct pool_taps *ty, const struct pool_taps *tx, int rows,
                                   int columns, const void *x, size_t at, size_t line, size_t c,
                                   bool add, void *y, size_t to, enum number_kind kind)
{
    size_t j = 0;

    for (; j + VEC <= c; j += VEC) {
        vec sum = add ? number_load(y, to + j, kind) : (vec){0};
        for (int ky = 0; ky < rows; ky++)
            for (int kx = 0; kx < columns; kx++)
                sum += vec_all(ty->weight[ky] * tx->weight[kx]) *
                       number_load(x, at + (size_t)ky * line + (size_t)kx * c + j, kind);
        number_store(y, to + j, sum, kind);
    }
    for (; j < c; j++) {
        float sum = add ? number_get(y, to + j, kind) : 0;
        for (int k = 0; k < rows * columns; k++)
            sum += ty->weight[k / columns] * tx->weight[k % columns] *
                   number_get(x, at + (size_t)(k / columns) * line + (size_t)(k % columns) * c + j,
                              kind);
        number_set(y, to + j, sum, kind);
    }
}

NUMBER_INLINE void pool_blur_of(const struct window *w, bool back, const void *x, size_t first,
                                size_t end, bool add, void *y, enum number_kind kind)
{
    size_t c = (size_t)w->channels, from = (size_t)(back ? w->out : w->in), line = from * c;
    static const struct pool_taps three = {
        0, 3, {0.25F, 0.5F, 0.25F}
    }; /* known to the compiler */
    struct pool_taps ty = {0}, tx;
    int size = back ? w->in : w->out;

    for (size_t i = first; i < end; i++) {
        int pixel = (int)(i % (size_t)(size * size));
        if (i == first || pixel % size == 0)
            ty = pool_blur_taps(w, pixel / size, back);
        tx = pool_blur_taps(w, pixel % size, back);
        size_t corner =
            (i / (size_t)(size * size) * from + (size_t)ty.first) * line + (size_t)tx.first * c;
        if (ty.count == 3 && tx.count == 3)
            pool_blur_pixel(&three, &three, 3, 3, x, corner, line, c, add, y, i * c, kind);
        else
            pool_blur_pixel(&ty, &tx, ty.count, tx.count, x, corner, line, c, add, y, i * c, kind);
    }
}

void pool_blur(const struct window *w, bool back, const void *x, size_t first, size_t end, bool add,
               void *y)
{
    if (!dry_run_moves((end - first) * (size_t)(w->channels * 10)))
        pool_blur_of(w, back, x, first, end, add, y, NUMBER_FLOAT);
}

void pool_bf16_blur(const struct window *w, bool back, const void *x, size_t first, size_t end,
                    bool add, void *y)
{
    if (!dry_run_moves_bf16((end - first) * (size_t)(w->channels * 10)))
        NUMBER_BF16_CALL(pool_blur_of, w, back, x, first, end, add, y);
}

/* ---- averages */

NUMBER_INLINE void pool_average_of(const void *x, const struct parallel_block *of, int pixels,
                                   size_t c, float *y, enum number_kind kind)
{
    size_t end = of->column + of->columns;

    for (size_t i = of->row; i < of->row + of->rows; i++) {
        size_t from = i * (size_t)pixels * c, j = of->column;
        for (; j + VEC <= end; j += VEC) {
            vec sum = {0};
            for (size_t p = 0; p < (size_t)pixels; p++)
                sum += number_load(x, from + p * c + j, kind);
            vec_store(y + i * c + j, sum / vec_all((float)pixels));
        }
        for (; j < end; j++) {
            float sum = 0;
            for (size_t p = 0; p < (size_t)pixels; p++)
                sum += number_get(x, from + p * c + j, kind);
            y[i * c + j] = sum / (float)pixels;
        }
    }
}

void pool_average(const void *x, const struct parallel_block *of, int pixels, size_t c, float *y)
{
    if (!dry_run_moves(of->rows * of->columns * (size_t)pixels))
        pool_average_of(x, of, pixels, c, y, NUMBER_FLOAT);
}

void pool_bf16_average(const void *x, const struct parallel_block *of, int pixels, size_t c,
                       float *y)
{
    if (!dry_run_moves_bf16(of->rows * of->columns * (size_t)pixels))
        pool_average_of(x, of, pixels, c, y, NUMBER_BF16);
}

NUMBER_INLINE void pool_spread_average(const float *dy, const struct parallel_block *of, int pixels,
                                       size_t c, void *dx, enum number_kind kind)
{
    size_t end = of->column + of->columns;

    for (size_t i = of->row; i < of->row + of->rows; i++) {
        const float *from = dy + i / (size_t)pixels * c;
        size_t j = of->column;
        for (; j + VEC <= end; j += VEC)
            number_store(dx, i * c + j, vec_load(from + j) / vec_all((float)pixels), kind);
        for (; j < end; j++)
            number_set(dx, i * c + j, from[j] / (float)pixels, kind);
    }
}

void pool_average_backward(const float *dy, const struct parallel_block *of, int pixels, size_t c,
                           void *dx)
{
    if (!dry_run_moves(of->rows * of->columns))
        pool_spread_average(dy, of, pixels, c, dx, NUMBER_FLOAT);
}

void pool_bf16_average_backward(const float *dy, const struct parallel_block *of, int pixels,
                                size_t c, void *dx)
{
    if (!dry_run_moves_bf16(of->rows * of->columns))
        pool_spread_average(dy, of, pixels, c, dx, NUMBER_BF16);
}
