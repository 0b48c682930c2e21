#include "worker/kernels/batchnorm_bf16.h"

#include "worker/kernels/bf16_vec.h"
#include "worker/kernels/extent.h"

enum { ROWS_IN_FLOAT = 128, WIDTH = 2, WIDE = WIDTH * VEC };

BF16_INLINE void add_to(double *sum, const vec *part)
{
    for (int v = 0; v < WIDTH; v++)
        for (int i = 0; i < VEC; i++)
            sum[v * VEC + i] += (double)part[v][i];
}

/* WIDE channels; the sums stay in registers. */
static void sums_block(const bf16 *z, size_t rows, size_t c, const float *shift, double *sum,
                       double *square_sum)
{
    vec s[WIDTH] = {{0}}, q[WIDTH] = {{0}};

    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < WIDTH; v++) {
            vec d = vec_load_bf16(z + r * c + v * VEC) - vec_load(shift + v * VEC);
            s[v] += d;
            q[v] += d * d;
        }
    add_to(sum, s);
    add_to(square_sum, q);
}

void batchnorm_bf16_sums(const bf16 *z, size_t rows, size_t c, const float *shift, double *sum,
                         double *square_sum)
{
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT)
        for (size_t j = 0; j < c; j += WIDE)
            sums_block(z + r * c + j, extent_min(rows - r, ROWS_IN_FLOAT), c, shift + j, sum + j,
                       square_sum + j);
}

/* One text for forward and for backward's mask, so that both round alike. */
BF16_INLINE vec normalised(const bf16 *z, const float *scale, const float *shift)
{
    return vec_load_bf16(z) * vec_load(scale) + vec_load(shift);
}

enum residual_kind { NO_RESIDUAL, PLAIN_RESIDUAL, SCALED_RESIDUAL };

BF16_INLINE void apply(const bf16 *z, size_t rows, size_t c, const float *scale, const float *shift,
                       const struct batchnorm_bf16_residual *res, enum residual_kind kind,
                       bool with_relu, bf16 *y, bool native)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < c; j += VEC) {
            size_t at = r * c + j;
            vec v = normalised(z + at, scale + j, shift + j);
            if (kind == PLAIN_RESIDUAL)
                v += vec_load_bf16(res->rows + at);
            if (kind == SCALED_RESIDUAL)
                v += normalised(res->rows + at, res->scale + j, res->shift + j);
            vec_store_bf16(y + at, with_relu ? vec_relu(v) : v, native);
        }
}

BF16_INLINE void apply_kinds(const bf16 *z, size_t rows, size_t c, const float *scale,
                             const float *shift, const struct batchnorm_bf16_residual *res,
                             bool with_relu, bf16 *y, bool native)
{
    if (!res || !res->rows)
        with_relu ? apply(z, rows, c, scale, shift, res, NO_RESIDUAL, true, y, native)
                  : apply(z, rows, c, scale, shift, res, NO_RESIDUAL, false, y, native);
    else if (!res->scale)
        apply(z, rows, c, scale, shift, res, PLAIN_RESIDUAL, with_relu, y, native);
    else
        apply(z, rows, c, scale, shift, res, SCALED_RESIDUAL, with_relu, y, native);
}

void batchnorm_bf16_apply(const bf16 *z, size_t rows, size_t c, const float *scale,
                          const float *shift, const struct batchnorm_bf16_residual *residual,
                          bool relu, bf16 *y)
{
    if (bf16_converts())
        apply_kinds(z, rows, c, scale, shift, residual, relu, y, true);
    else
        apply_kinds(z, rows, c, scale, shift, residual, relu, y, false);
}

/* WIDE channels from j on. A masked g is what it was or 0: it is not rounded. */
BF16_INLINE void mask_sums_block(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows,
                                 size_t c, size_t j, bool by_y, int branches,
                                 const struct batchnorm_bf16_branch *branch, double *g_sum,
                                 bool native)
{
    vec s[WIDTH] = {{0}}, p[WIDTH] = {{0}}, q[WIDTH] = {{0}};

    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < WIDTH; v++) {
            size_t channel = j + (size_t)v * VEC, at = r * c + channel;
            vec x = vec_load_bf16(g + at);
            vec y =
                by_y ? vec_load_bf16(mask->y + at)
                     : normalised(branch[0].z + at, mask->scale + channel, mask->shift + channel);
            x = vec_where_positive(x, y);
            vec_store_bf16(g + at, x, native);
            s[v] += x;
            p[v] += x * (vec_load_bf16(branch[0].z + at) - vec_load(branch[0].mean + channel));
            if (branches > 1)
                q[v] += x * (vec_load_bf16(branch[1].z + at) - vec_load(branch[1].mean + channel));
        }
    add_to(g_sum + j, s);
    add_to(branch[0].gz_sum + j, p);
    if (branches > 1)
        add_to(branch[1].gz_sum + j, q);
}

BF16_INLINE void mask_sums(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows, size_t c,
                           const struct batchnorm_bf16_branch *branch, double *g_sum, bool native)
{
    for (size_t j = 0; j < c; j += WIDE)
        if (!mask->y)
            mask_sums_block(g, mask, rows, c, j, false, 1, branch, g_sum, native);
        else if (!branch[1].z)
            mask_sums_block(g, mask, rows, c, j, true, 1, branch, g_sum, native);
        else
            mask_sums_block(g, mask, rows, c, j, true, 2, branch, g_sum, native);
}

void batchnorm_bf16_mask_sums(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows,
                              size_t c, const struct batchnorm_bf16_branch branch[2], double *g_sum)
{
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT) {
        size_t n = extent_min(rows - r, ROWS_IN_FLOAT), at = r * c;
        struct batchnorm_bf16_branch b[2] = {branch[0], branch[1]};
        struct batchnorm_bf16_mask m = *mask;
        for (int i = 0; i < 2; i++)
            b[i].z = b[i].z ? b[i].z + at : NULL;
        m.y = m.y ? m.y + at : NULL;
        if (bf16_converts())
            mask_sums(g + at, &m, n, c, b, g_sum, true);
        else
            mask_sums(g + at, &m, n, c, b, g_sum, false);
    }
}

BF16_INLINE void input_gradient(const bf16 *g, const bf16 *z, size_t rows, size_t c, const float *a,
                                const float *b, const float *c0, bf16 *dz, bool native)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < c; j += VEC) {
            size_t at = r * c + j;
            vec v = vec_load(a + j) * vec_load_bf16(g + at) +
                    (vec_load(b + j) * vec_load_bf16(z + at) + vec_load(c0 + j));
            vec_store_bf16(dz + at, v, native);
        }
}

void batchnorm_bf16_input_gradient(const bf16 *g, const bf16 *z, size_t rows, size_t c,
                                   const float *a, const float *b, const float *c0, bf16 *dz)
{
    if (bf16_converts())
        input_gradient(g, z, rows, c, a, b, c0, dz, true);
    else
        input_gradient(g, z, rows, c, a, b, c0, dz, false);
}

/* ---------------------------------------------------------------- pooling */

/* The first of the largest, or the last NaN, as pool_max. */
static void bf16_max_of_vector(const struct window *w, const bf16 *x, struct window_hits ty,
                               struct window_hits tx, bf16 *y, uint8_t *tap)
{
    vec best = vec_all(-INFINITY);
    vec_int best_tap = {0};

    for (int ky = ty.first; ky < ty.end; ky++)
        for (int kx = tx.first; kx < tx.end; kx++) {
            size_t pixel = (size_t)((ty.start + ky) * w->in + tx.start + kx);
            vec v = vec_load_bf16(x + pixel * (size_t)w->channels);
            vec_int larger = (vec_int)(v > best) | (vec_int)(v != v),
                    here = (vec_int){0} + (ky * w->kernel + kx);
            best = (vec)(((vec_int)v & larger) | ((vec_int)best & ~larger));
            best_tap = (here & larger) | (best_tap & ~larger);
        }
    vec_store_bf16(y, best, false);
    if (tap)
        *(vec_bytes *)tap = __builtin_convertvector(best_tap, vec_bytes);
}

void pool_bf16_max(const struct window *w, const bf16 *x, int n, bf16 *y, uint8_t *tap)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    size_t image = (size_t)w->in * (size_t)w->in * c;

    for (size_t i = 0; i < (size_t)n * pixels; i++) {
        struct window_hits ty = window_hits_at(w, (int)(i % pixels) / w->out),
                           tx = window_hits_at(w, (int)(i % pixels) % w->out);
        for (size_t j = 0; j < c; j += VEC)
            bf16_max_of_vector(w, x + i / pixels * image + j, ty, tx, y + i * c + j,
                               tap ? tap + i * c + j : NULL);
    }
}

/* Windows of one direction that see input position p: [first, end). */
static struct window_hits windows_at(const struct window *w, int p)
{
    int reach = p + w->pad - w->kernel + 1;
    struct window_hits t = {reach > 0 ? (reach + w->stride - 1) / w->stride : 0,
                            (p + w->pad) / w->stride + 1, 0};
    if (t.end > w->out)
        t.end = w->out;
    return t;
}

/* VEC channels of one pixel: what the windows that see it send back. */
static void gather_vector(const struct window *w, int y, int x, const bf16 *dy, const uint8_t *tap,
                          bf16 *dx)
{
    struct window_hits wy = windows_at(w, y), wx = windows_at(w, x);
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

void pool_bf16_max_backward(const struct window *w, const bf16 *dy, const uint8_t *tap, int n,
                            bf16 *dx)
{
    size_t c = (size_t)w->channels, in = (size_t)w->in * (size_t)w->in,
           out = (size_t)w->out * (size_t)w->out;

    for (size_t i = 0; i < (size_t)n * in; i++)
        for (size_t j = 0; j < c; j += VEC)
            gather_vector(w, (int)(i % in) / w->in, (int)(i % in) % w->in,
                          dy + i / in * out * c + j, tap + i / in * out * c + j, dx + i * c + j);
}

void pool_bf16_average(const bf16 *x, int n, int pixels, int c, float *y)
{
    for (int i = 0; i < n; i++, x += pixels * c, y += c)
        for (int j = 0; j < c; j += VEC) {
            vec sum = {0};
            for (int p = 0; p < pixels; p++)
                sum += vec_load_bf16(x + p * c + j);
            vec_store(y + j, sum / vec_all((float)pixels));
        }
}

void pool_bf16_average_backward(const float *dy, int n, int pixels, int c, bf16 *dx)
{
    for (int i = 0; i < n; i++, dy += c)
        for (int p = 0; p < pixels; p++, dx += c)
            for (int j = 0; j < c; j += VEC)
                vec_store_bf16(dx + j, vec_load(dy + j) / vec_all((float)pixels), false);
}
