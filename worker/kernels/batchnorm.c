#include "worker/kernels/batchnorm.h"

#include "worker/kernels/numbers.h"
#include "worker/team/parallel.h"

/* Sums are taken in float over so many rows; rows are read in order, so few at a time, and the sums
 * of so many channels stay in the first-level cache. */
enum { ROWS_IN_FLOAT = 128, ROWS_AT_ONCE = 4, CHANNELS_AT_ONCE = 512, ROWS_AHEAD = 16 };

NUMBER_INLINE void batchnorm_add_to(double *sum, const float *part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += (double)part[i];
}

/* Channels [j, j + n) of z, whose first row is at z's element `at`. */
NUMBER_INLINE void batchnorm_sums_block(const void *z, size_t at, size_t rows, size_t n, size_t ld,
                                        const float *shift, float part[2][CHANNELS_AT_ONCE],
                                        enum number_kind kind)
{
    for (size_t i = 0; i < n; i += VEC) {
        vec s = vec_load(part[0] + i), q = vec_load(part[1] + i);
        for (size_t r = 0; r < rows; r++) {
            vec d = number_load(z, at + r * ld + i, kind) - vec_load(shift + i);
            number_prefetch(z, at + (r + ROWS_AHEAD) * ld + i, kind);
            s += d;
            q += d * d;
        }
        vec_store(part[0] + i, s);
        vec_store(part[1] + i, q);
    }
}

NUMBER_INLINE void batchnorm_sums_of(const void *z, size_t rows, size_t c, size_t ld,
                                     const float *shift, double *sum, double *square_sum,
                                     enum number_kind kind)
{
    size_t wide = c - c % VEC, count, n;

    for (size_t r = 0; r < rows; r += count) {
        count = size_min(rows - r, ROWS_IN_FLOAT);
        for (size_t j = 0; j < wide; j += n) {
            float part[2][CHANNELS_AT_ONCE] __attribute__((aligned(64))) = {{0}};
            n = size_min(wide - j, CHANNELS_AT_ONCE);
            for (size_t i = 0; i < count; i += ROWS_AT_ONCE)
                batchnorm_sums_block(z, (r + i) * ld + j, size_min(count - i, ROWS_AT_ONCE), n, ld,
                                     shift + j, part, kind);
            batchnorm_add_to(sum + j, part[0], n);
            batchnorm_add_to(square_sum + j, part[1], n);
        }
        for (size_t j = wide; j < c; j++)
            for (size_t i = 0; i < count; i++) {
                double d = number_get(z, (r + i) * ld + j, kind) - shift[j];
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
            size_t at = r * ld + j, ahead = at + ROWS_AHEAD * ld;
            vec v = batchnorm_normalised(z, at, scale + j, shift + j, kind);
            number_prefetch(z, ahead, kind);
            if (residual != NO_RESIDUAL)
                number_prefetch(res->rows, ahead, kind);
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

/* Channels [j, j + n). A masked g is unchanged or 0, so it is not rounded. */
NUMBER_INLINE void batchnorm_mask_block(void *g, const struct batchnorm_mask *mask, size_t row,
                                        size_t rows, size_t ld, size_t j, size_t n,
                                        enum mask_kind by, int branches,
                                        const struct batchnorm_branch *branch,
                                        float part[3][CHANNELS_AT_ONCE], enum number_kind kind)
{
    const void *y = by == MASK_OF_Y ? mask->y : NULL, *z = branch[0].z, *other = branch[1].z;

    for (size_t i = 0; i < n; i += VEC) {
        vec s = vec_load(part[0] + i), p = vec_load(part[1] + i), q = vec_load(part[2] + i);
        vec scale = {0}, shift = {0}, mean = {0}, other_mean = {0}, zs = {0};
        if (by == MASK_OF_Z) {
            scale = vec_load(mask->scale + j + i);
            shift = vec_load(mask->shift + j + i);
        }
        if (branches > 0)
            mean = vec_load(branch[0].mean + j + i);
        if (branches > 1)
            other_mean = vec_load(branch[1].mean + j + i);
        for (size_t r = row; r < row + rows; r++) {
            size_t at = r * ld + j + i, ahead = at + ROWS_AHEAD * ld;
            vec x = number_load(g, at, kind);
            number_prefetch(g, ahead, kind);
            if (by == MASK_OF_Z || branches > 0)
                zs = number_load(z, at, kind);
            if (by == MASK_OF_Z || branches > 0)
                number_prefetch(z, ahead, kind);
            if (by == MASK_OF_Y) {
                x = vec_where_positive(x, number_load(y, at, kind));
                number_prefetch(y, ahead, kind);
            }
            if (by == MASK_OF_Z)
                x = vec_where_positive(x, zs * scale + shift);
            if (by)
                number_store(g, at, x, kind);
            s += x;
            if (branches > 0)
                p += x * (zs - mean);
            if (branches > 1) {
                q += x * (number_load(other, at, kind) - other_mean);
                number_prefetch(other, ahead, kind);
            }
        }
        vec_store(part[0] + i, s);
        if (branches > 0)
            vec_store(part[1] + i, p);
        if (branches > 1)
            vec_store(part[2] + i, q);
    }
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

/* The cases of training are compiled separately. */
NUMBER_INLINE void batchnorm_mask_blocks(void *g, const struct batchnorm_mask *mask, size_t row,
                                         size_t rows, size_t ld, size_t j, size_t n, int branches,
                                         const struct batchnorm_branch *branch,
                                         float part[3][CHANNELS_AT_ONCE], enum number_kind kind)
{
    enum mask_kind by = !mask ? NO_MASK : mask->y ? MASK_OF_Y : MASK_OF_Z;
    size_t k;

    for (size_t r = row; r < row + rows; r += k) {
        k = size_min(row + rows - r, ROWS_AT_ONCE);
        if (by == MASK_OF_Z && branches == 1)
            batchnorm_mask_block(g, mask, r, k, ld, j, n, MASK_OF_Z, 1, branch, part, kind);
        else if (by == MASK_OF_Y && branches == 1)
            batchnorm_mask_block(g, mask, r, k, ld, j, n, MASK_OF_Y, 1, branch, part, kind);
        else if (by == MASK_OF_Y && branches == 2)
            batchnorm_mask_block(g, mask, r, k, ld, j, n, MASK_OF_Y, 2, branch, part, kind);
        else
            batchnorm_mask_block(g, mask, r, k, ld, j, n, by, branches, branch, part, kind);
    }
}

/* Sums these rows in float. */
NUMBER_INLINE void batchnorm_mask_rows(void *g, const struct batchnorm_mask *mask, size_t row,
                                       size_t rows, size_t c, size_t ld,
                                       const struct batchnorm_branch *branch, double *g_sum,
                                       enum number_kind kind)
{
    int branches = !branch[0].z ? 0 : !branch[1].z ? 1 : 2;
    size_t wide = c - c % (2 * (size_t)VEC), n;

    for (size_t j = 0; j < wide; j += n) {
        float part[3][CHANNELS_AT_ONCE] __attribute__((aligned(64))) = {{0}};
        n = size_min(wide - j, CHANNELS_AT_ONCE);
        batchnorm_mask_blocks(g, mask, row, rows, ld, j, n, branches, branch, part, kind);
        batchnorm_add_to(g_sum + j, part[0], n);
        if (branches > 0)
            batchnorm_add_to(branch[0].gz_sum + j, part[1], n);
        if (branches > 1)
            batchnorm_add_to(branch[1].gz_sum + j, part[2], n);
    }
    for (size_t j = wide; j < c; j++)
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
        for (; j + VEC <= c; j += VEC) {
            size_t ahead = (r + ROWS_AHEAD) * ld + j;
            number_prefetch(g, ahead, kind);
            number_prefetch(z, ahead, kind);
            number_store(
                dz, r * ld + j,
                vec_load(a + j) * number_load(g, r * ld + j, kind) +
                    (vec_load(b + j) * number_load(z, r * ld + j, kind) + vec_load(c0 + j)),
                kind);
        }
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
