#include "worker/kernels/bf16/batchnorm_bf16.h"

#include "worker/kernels/bf16/bf16_vec.h"
#include "worker/team/dry_run.h"
#include "worker/kernels/extent.h"
#include "worker/kernels/vec_math.h"

enum { ROWS_IN_FLOAT = 128, WIDTH = 2, WIDE = WIDTH * VEC };

BF16_INLINE void add_to(double *sum, const vec *part)
{
    for (int v = 0; v < WIDTH; v++)
        for (int i = 0; i < VEC; i++)
            sum[v * VEC + i] += (double)part[v][i];
}

/* WIDE channels; the sums stay in registers. */
static void batchnorm_bf16_sums_block(const bf16 *z, size_t rows, size_t c, const float *shift,
                                      double *sum, double *square_sum)
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
    if (dry_run_moves_bf16(rows * c))
        return;
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT)
        for (size_t j = 0; j < c; j += WIDE)
            batchnorm_bf16_sums_block(z + r * c + j, extent_min(rows - r, ROWS_IN_FLOAT), c,
                                      shift + j, sum + j, square_sum + j);
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
    if (dry_run_moves_bf16((residual && residual->rows ? 3 : 2) * rows * c))
        return;
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
    if (dry_run_moves_bf16((branch[1].z ? 4 : 3) * rows * c))
        return;
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
    if (dry_run_moves_bf16(3 * rows * c))
        return;
    if (bf16_converts())
        input_gradient(g, z, rows, c, a, b, c0, dz, true);
    else
        input_gradient(g, z, rows, c, a, b, c0, dz, false);
}
