#include "worker/kernels/batchnorm.h"

#include "worker/kernels/numbers.h"
#include "worker/team/parallel.h"

enum { ROWS_IN_FLOAT = 128, WIDEST = 4 };

NUMBER_INLINE void batchnorm_add_to(double *sum, const vec *part, int width)
{
    for (int v = 0; v < width; v++)
        for (int i = 0; i < VEC; i++)
            sum[v * VEC + i] += (double)part[v][i];
}

/* `width` vectors of channels; the accumulators stay in registers. */
NUMBER_INLINE void batchnorm_sums_block(const void *z, size_t at, size_t rows, size_t ld,
                                        const float *shift, int width, double *sum,
                                        double *square_sum, enum number_kind kind)
{
    vec s[WIDEST] = {{0}}, q[WIDEST] = {{0}};

    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < width; v++) {
            vec d = number_load(z, at + r * ld + (size_t)v * VEC, kind) - vec_load(shift + v * VEC);
            s[v] += d;
            q[v] += d * d;
        }
    batchnorm_add_to(sum, s, width);
    batchnorm_add_to(square_sum, q, width);
}

NUMBER_INLINE void batchnorm_sums_of(const void *z, size_t rows, size_t c, size_t ld,
                                     const float *shift, double *sum, double *square_sum,
                                     enum number_kind kind)
{
    const int width = kind == NUMBER_FLOAT ? WIDEST : 2;
    const size_t wide = (size_t)width * VEC;

    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT) {
        size_t n = size_min(rows - r, ROWS_IN_FLOAT), at = r * ld, j = 0;
        for (; j + wide <= c; j += wide)
            batchnorm_sums_block(z, at + j, n, ld, shift + j, width, sum + j, square_sum + j, kind);
        for (; j + VEC <= c; j += VEC)
            batchnorm_sums_block(z, at + j, n, ld, shift + j, 1, sum + j, square_sum + j, kind);
        for (; j < c; j++)
            for (size_t i = 0; i < n; i++) {
                double d = number_get(z, at + i * ld + j, kind) - shift[j];
                sum[j] += d;
                square_sum[j] += d * d;
            }
    }
}

void batchnorm_sums(const void *z, size_t rows, size_t c, size_t ld, const float *shift,
                    double *sum, double *square_sum)
{
    if (!dry_run_moves(rows * c))
        batchnorm_sums_of(z, rows, c, ld, shift, sum, square_sum, NUMBER_FLOAT);
}

void batchnorm_bf16_sums(const void *z, size_t rows, size_t c, size_t ld, const float *shift,
                         double *sum, double *square_sum)
{
    if (!dry_run_moves_bf16(rows * c))
        batchnorm_sums_of(z, rows, c, ld, shift, sum, square_sum, NUMBER_BF16);
}

/* Shared by forward and the mask of backward, so that both round alike. */
NUMBER_INLINE vec batchnorm_normalised(const void *z, size_t at, const float *scale,
                                       const float *shift, enum number_kind kind)
{
    return number_load(z, at, kind) * vec_load(scale) + vec_load(shift);
}

enum residual_kind { NO_RESIDUAL, PLAIN_RESIDUAL, SCALED_RESIDUAL };

NUMBER_INLINE void batchnorm_apply_rows(const void *z, size_t rows, size_t c, size_t ld,
                                        const float *scale, const float *shift,
                                        const struct batchnorm_residual *res,
                                        enum residual_kind residual, bool with_relu, void *y,
                                        enum number_kind kind)
{
    for (size_t r = 0; r < rows; r++) {
        size_t j = 0;
        for (; j + VEC <= c; j += VEC) {
            size_t at = r * ld + j;
            vec v = batchnorm_normalised(z, at, scale + j, shift + j, kind);
            if (residual == PLAIN_RESIDUAL)
                v += number_load(res->rows, at, kind);
            if (residual == SCALED_RESIDUAL)
                v += batchnorm_normalised(res->rows, at, res->scale + j, res->shift + j, kind);
            number_store(y, at, with_relu ? vec_relu(v) : v, kind);
        }
        for (; j < c; j++) {
            size_t at = r * ld + j;
            float v = number_get(z, at, kind) * scale[j] + shift[j];
            if (residual == PLAIN_RESIDUAL)
                v += number_get(res->rows, at, kind);
            if (residual == SCALED_RESIDUAL)
                v += number_get(res->rows, at, kind) * res->scale[j] + res->shift[j];
            number_set(y, at, with_relu ? relu(v) : v, kind);
        }
    }
}

/* The cases of training are compiled separately. */
NUMBER_INLINE void batchnorm_apply_to(const void *z, size_t rows, size_t c, size_t ld,
                                      const float *scale, const float *shift,
                                      const struct batchnorm_residual *res, bool with_relu, void *y,
                                      enum number_kind kind)
{
    if ((!res || !res->rows) && with_relu)
        batchnorm_apply_rows(z, rows, c, ld, scale, shift, res, NO_RESIDUAL, true, y, kind);
    else if (!res || !res->rows)
        batchnorm_apply_rows(z, rows, c, ld, scale, shift, res, NO_RESIDUAL, false, y, kind);
    else if (!res->scale)
        batchnorm_apply_rows(z, rows, c, ld, scale, shift, res, PLAIN_RESIDUAL, with_relu, y, kind);
    else
        batchnorm_apply_rows(z, rows, c, ld, scale, shift, res, SCALED_RESIDUAL, with_relu, y,
                             kind);
}

void batchnorm_apply(const void *z, size_t rows, size_t c, size_t ld, const float *scale,
                     const float *shift, const struct batchnorm_residual *residual, bool with_relu,
                     void *y)
{
    if (!dry_run_moves((residual && residual->rows ? 3 : 2) * rows * c))
        batchnorm_apply_to(z, rows, c, ld, scale, shift, residual, with_relu, y, NUMBER_FLOAT);
}

void batchnorm_bf16_apply(const void *z, size_t rows, size_t c, size_t ld, const float *scale,
                          const float *shift, const struct batchnorm_residual *residual,
                          bool with_relu, void *y)
{
    if (!dry_run_moves_bf16((residual && residual->rows ? 3 : 2) * rows * c))
        NUMBER_BF16_CALL(batchnorm_apply_to, z, rows, c, ld, scale, shift, residual, with_relu, y);
}

enum mask_kind { NO_MASK, MASK_OF_Y, MASK_OF_Z };

/* `width` vectors of channels from j on. A masked g is unchanged or 0, so it is not rounded. */
NUMBER_INLINE void batchnorm_mask_block(void *g, const struct batchnorm_mask *mask, size_t row,
                                        size_t rows, size_t ld, size_t j, enum mask_kind by,
                                        int branches, const struct batchnorm_branch *branch,
                                        double *g_sum, enum number_kind kind)
{
    vec s[2] = {{0}}, p[2] = {{0}}, q[2] = {{0}};

    for (size_t r = row; r < row + rows; r++)
        for (int v = 0; v < 2; v++) {
            size_t channel = j + (size_t)v * VEC, at = r * ld + channel;
            vec x = number_load(g, at, kind);
            if (by == MASK_OF_Y)
                x = vec_where_positive(x, number_load(mask->y, at, kind));
            if (by == MASK_OF_Z)
                x = vec_where_positive(x,
                                       batchnorm_normalised(branch[0].z, at, mask->scale + channel,
                                                            mask->shift + channel, kind));
            if (by)
                number_store(g, at, x, kind);
            s[v] += x;
            if (branches > 0)
                p[v] +=
                    x * (number_load(branch[0].z, at, kind) - vec_load(branch[0].mean + channel));
            if (branches > 1)
                q[v] +=
                    x * (number_load(branch[1].z, at, kind) - vec_load(branch[1].mean + channel));
        }
    batchnorm_add_to(g_sum + j, s, 2);
    if (branches > 0)
        batchnorm_add_to(branch[0].gz_sum + j, p, 2);
    if (branches > 1)
        batchnorm_add_to(branch[1].gz_sum + j, q, 2);
}

NUMBER_INLINE bool batchnorm_passes(const struct batchnorm_mask *mask, const void *z, size_t at,
                                    size_t j, enum number_kind kind)
{
    if (!mask)
        return true;
    return (mask->y ? number_get(mask->y, at, kind)
                    : number_get(z, at, kind) * mask->scale[j] + mask->shift[j]) > 0;
}

NUMBER_INLINE void batchnorm_mask_column(void *g, const struct batchnorm_mask *mask, size_t row,
                                         size_t rows, size_t ld, size_t j,
                                         const struct batchnorm_branch *branch, double *g_sum,
                                         enum number_kind kind)
{
    for (size_t r = row; r < row + rows; r++) {
        size_t at = r * ld + j;
        if (!batchnorm_passes(mask, branch[0].z, at, j, kind))
            number_set(g, at, 0, kind);
        float x = number_get(g, at, kind);
        g_sum[j] += x;
        for (int b = 0; b < 2; b++)
            if (branch[b].z)
                branch[b].gz_sum[j] +=
                    (double)x * (number_get(branch[b].z, at, kind) - branch[b].mean[j]);
    }
}

/* Sums these rows in float. The cases of training are compiled separately. */
NUMBER_INLINE void batchnorm_mask_rows(void *g, const struct batchnorm_mask *mask, size_t row,
                                       size_t rows, size_t c, size_t ld,
                                       const struct batchnorm_branch *branch, double *g_sum,
                                       enum number_kind kind)
{
    int branches = !branch[0].z ? 0 : !branch[1].z ? 1 : 2;
    enum mask_kind by = !mask ? NO_MASK : mask->y ? MASK_OF_Y : MASK_OF_Z;
    size_t j = 0;

    for (; j + 2 * VEC <= c; j += 2 * VEC) {
        if (by == MASK_OF_Z && branches == 1)
            batchnorm_mask_block(g, mask, row, rows, ld, j, MASK_OF_Z, 1, branch, g_sum, kind);
        else if (by == MASK_OF_Y && branches == 1)
            batchnorm_mask_block(g, mask, row, rows, ld, j, MASK_OF_Y, 1, branch, g_sum, kind);
        else if (by == MASK_OF_Y && branches == 2)
            batchnorm_mask_block(g, mask, row, rows, ld, j, MASK_OF_Y, 2, branch, g_sum, kind);
        else
            batchnorm_mask_block(g, mask, row, rows, ld, j, by, branches, branch, g_sum, kind);
    }
    for (; j < c; j++)
        batchnorm_mask_column(g, mask, row, rows, ld, j, branch, g_sum, kind);
}

void batchnorm_mask_sums(void *g, const struct batchnorm_mask *mask, size_t rows, size_t c,
                         size_t ld, const struct batchnorm_branch branch[2], double *g_sum)
{
    if (dry_run_moves((branch[1].z ? 4 : 3) * rows * c))
        return;
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT)
        batchnorm_mask_rows(g, mask, r, size_min(rows - r, ROWS_IN_FLOAT), c, ld, branch, g_sum,
                            NUMBER_FLOAT);
}

void batchnorm_bf16_mask_sums(void *g, const struct batchnorm_mask *mask, size_t rows, size_t c,
                              size_t ld, const struct batchnorm_branch branch[2], double *g_sum)
{
    if (dry_run_moves_bf16((branch[1].z ? 4 : 3) * rows * c))
        return;
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT)
        NUMBER_BF16_CALL(batchnorm_mask_rows, g, mask, r, size_min(rows - r, ROWS_IN_FLOAT), c, ld,
                         branch, g_sum);
}

NUMBER_INLINE void batchnorm_input_rows(const void *g, const void *z, size_t rows, size_t c,
                                        size_t ld, const float *a, const float *b, const float *c0,
                                        void *dz, enum number_kind kind)
{
    for (size_t r = 0; r < rows; r++) {
        size_t j = 0;
        for (; j + VEC <= c; j += VEC)
            number_store(
                dz, r * ld + j,
                vec_load(a + j) * number_load(g, r * ld + j, kind) +
                    (vec_load(b + j) * number_load(z, r * ld + j, kind) + vec_load(c0 + j)),
                kind);
        for (; j < c; j++)
            number_set(dz, r * ld + j,
                       a[j] * number_get(g, r * ld + j, kind) +
                           (b[j] * number_get(z, r * ld + j, kind) + c0[j]),
                       kind);
    }
}

void batchnorm_input_gradient(const void *g, const void *z, size_t rows, size_t c, size_t ld,
                              const float *a, const float *b, const float *c0, void *dz)
{
    if (!dry_run_moves(3 * rows * c))
        batchnorm_input_rows(g, z, rows, c, ld, a, b, c0, dz, NUMBER_FLOAT);
}

void batchnorm_bf16_input_gradient(const void *g, const void *z, size_t rows, size_t c, size_t ld,
                                   const float *a, const float *b, const float *c0, void *dz)
{
    if (!dry_run_moves_bf16(3 * rows * c))
        NUMBER_BF16_CALL(batchnorm_input_rows, g, z, rows, c, ld, a, b, c0, dz);
}
