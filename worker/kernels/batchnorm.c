#include "worker/kernels/batchnorm.h"

#include "worker/kernels/bf16_vec.h"
#include "worker/kernels/vec_math.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

enum { ROWS_IN_FLOAT = 128, WIDE = 4 * VEC };

static void batchnorm_add_to(double *sum, const float *part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += part[i];
}

/* `width` vectors of channels; the accumulators stay in registers. */
static inline __attribute__((always_inline)) void sums_block(const float *z, size_t rows, size_t ld,
                                                             const float *shift, int width,
                                                             double *sum, double *square_sum)
{
    vec s[4] = {{0}}, q[4] = {{0}};
    float out[WIDE];

    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < width; v++) {
            vec d = vec_load(z + r * ld + v * VEC) - vec_load(shift + v * VEC);
            s[v] += d;
            q[v] += d * d;
        }
    for (int v = 0; v < width; v++)
        vec_store(out + v * VEC, s[v]);
    batchnorm_add_to(sum, out, (size_t)width * VEC);
    for (int v = 0; v < width; v++)
        vec_store(out + v * VEC, q[v]);
    batchnorm_add_to(square_sum, out, (size_t)width * VEC);
}

void batchnorm_sums(const float *z, size_t rows, size_t c, size_t ld, const float *shift,
                    double *sum, double *square_sum)
{
    if (dry_run_moves(rows * c))
        return;
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT) {
        size_t n = size_min(rows - r, ROWS_IN_FLOAT), j = 0;
        const float *block = z + r * ld;
        for (; j + WIDE <= c; j += WIDE)
            sums_block(block + j, n, ld, shift + j, 4, sum + j, square_sum + j);
        for (; j + VEC <= c; j += VEC)
            sums_block(block + j, n, ld, shift + j, 1, sum + j, square_sum + j);
        for (; j < c; j++)
            for (size_t i = 0; i < n; i++) {
                double d = block[i * ld + j] - shift[j];
                sum[j] += d;
                square_sum[j] += d * d;
            }
    }
}

/* Shared by forward and the mask of backward, so that both round alike. */
static inline vec batchnorm_normalised(const float *z, const float *scale, const float *shift)
{
    return vec_load(z) * vec_load(scale) + vec_load(shift);
}

enum residual_kind { NO_RESIDUAL, PLAIN_RESIDUAL, SCALED_RESIDUAL };

static inline __attribute__((always_inline)) void
apply(const float *z, size_t rows, size_t c, size_t ld, const float *scale, const float *shift,
      const struct batchnorm_residual *res, enum residual_kind kind, bool with_relu, float *y)
{
    for (size_t r = 0; r < rows; r++) {
        const float *zr = z + r * ld, *rr = kind ? res->rows + r * ld : NULL;
        float *yr = y + r * ld;
        size_t j = 0;
        for (; j + VEC <= c; j += VEC) {
            vec v = batchnorm_normalised(zr + j, scale + j, shift + j);
            if (kind == PLAIN_RESIDUAL)
                v += vec_load(rr + j);
            if (kind == SCALED_RESIDUAL)
                v += vec_load(rr + j) * vec_load(res->scale + j) + vec_load(res->shift + j);
            if (with_relu)
                v = vec_relu(v);
            vec_store(yr + j, v);
        }
        for (; j < c; j++) {
            float v = zr[j] * scale[j] + shift[j];
            if (kind == PLAIN_RESIDUAL)
                v += rr[j];
            if (kind == SCALED_RESIDUAL)
                v += rr[j] * res->scale[j] + res->shift[j];
            yr[j] = with_relu ? relu(v) : v;
        }
    }
}

void batchnorm_apply(const float *z, size_t rows, size_t c, size_t ld, const float *scale,
                     const float *shift, const struct batchnorm_residual *residual, bool with_relu,
                     float *y)
{
    if (dry_run_moves((residual && residual->rows ? 3 : 2) * rows * c))
        return;
    if (!residual || !residual->rows)
        with_relu ? apply(z, rows, c, ld, scale, shift, residual, NO_RESIDUAL, true, y)
                  : apply(z, rows, c, ld, scale, shift, residual, NO_RESIDUAL, false, y);
    else if (!residual->scale)
        apply(z, rows, c, ld, scale, shift, residual, PLAIN_RESIDUAL, with_relu, y);
    else
        apply(z, rows, c, ld, scale, shift, residual, SCALED_RESIDUAL, with_relu, y);
}

enum mask_kind { NO_MASK, MASK_OF_Y, MASK_OF_Z };

static inline __attribute__((always_inline)) void
mask_sums_block(float *g, const struct batchnorm_mask *mask, size_t rows, size_t ld, size_t j,
                int width, enum mask_kind kind, int branches, const struct batchnorm_branch *branch,
                double *g_sum)
{
    vec s[2] = {{0}}, p[2] = {{0}}, q[2] = {{0}};
    float out[2 * VEC];
    size_t n = (size_t)width * VEC;

    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < width; v++) {
            size_t channel = j + (size_t)v * VEC, at = r * ld + channel;
            vec x = vec_load(g + at);
            if (kind == MASK_OF_Y)
                x = vec_where_positive(x, vec_load(mask->y + at));
            if (kind == MASK_OF_Z)
                x = vec_where_positive(x,
                                       batchnorm_normalised(branch[0].z + at, mask->scale + channel,
                                                            mask->shift + channel));
            if (kind)
                vec_store(g + at, x);
            s[v] += x;
            if (branches > 0)
                p[v] += x * (vec_load(branch[0].z + at) - vec_load(branch[0].mean + channel));
            if (branches > 1)
                q[v] += x * (vec_load(branch[1].z + at) - vec_load(branch[1].mean + channel));
        }
    for (int v = 0; v < width; v++)
        vec_store(out + v * VEC, s[v]);
    batchnorm_add_to(g_sum + j, out, n);
    for (int v = 0; v < width; v++)
        vec_store(out + v * VEC, p[v]);
    if (branches > 0)
        batchnorm_add_to(branch[0].gz_sum + j, out, n);
    for (int v = 0; v < width; v++)
        vec_store(out + v * VEC, q[v]);
    if (branches > 1)
        batchnorm_add_to(branch[1].gz_sum + j, out, n);
}

static bool batchnorm_passes(const struct batchnorm_mask *mask, const float *z, size_t at, size_t j)
{
    if (!mask)
        return true;
    return (mask->y ? mask->y[at] : z[at] * mask->scale[j] + mask->shift[j]) > 0;
}

static void batchnorm_mask_sums_column(float *g, const struct batchnorm_mask *mask, size_t rows,
                                       size_t ld, size_t j, const struct batchnorm_branch *branch,
                                       double *g_sum)
{
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * ld + j;
        if (!batchnorm_passes(mask, branch[0].z, at, j))
            g[at] = 0;
        g_sum[j] += g[at];
        for (int b = 0; b < 2; b++)
            if (branch[b].z)
                branch[b].gz_sum[j] += (double)g[at] * (branch[b].z[at] - branch[b].mean[j]);
    }
}

/* Sums these rows in float. The cases of training are compiled separately. */
static void batchnorm_mask_sums_rows(float *g, const struct batchnorm_mask *mask, size_t rows,
                                     size_t c, size_t ld, const struct batchnorm_branch *branch,
                                     double *g_sum)
{
    int branches = !branch[0].z ? 0 : !branch[1].z ? 1 : 2;
    enum mask_kind kind = !mask ? NO_MASK : mask->y ? MASK_OF_Y : MASK_OF_Z;
    size_t j = 0;

    for (; j + 2 * VEC <= c; j += 2 * VEC) {
        if (kind == MASK_OF_Z && branches == 1)
            mask_sums_block(g, mask, rows, ld, j, 2, MASK_OF_Z, 1, branch, g_sum);
        else if (kind == MASK_OF_Y && branches == 1)
            mask_sums_block(g, mask, rows, ld, j, 2, MASK_OF_Y, 1, branch, g_sum);
        else if (kind == MASK_OF_Y && branches == 2)
            mask_sums_block(g, mask, rows, ld, j, 2, MASK_OF_Y, 2, branch, g_sum);
        else
            mask_sums_block(g, mask, rows, ld, j, 2, kind, branches, branch, g_sum);
    }
    for (; j < c; j++)
        batchnorm_mask_sums_column(g, mask, rows, ld, j, branch, g_sum);
}

void batchnorm_mask_sums(float *g, const struct batchnorm_mask *mask, size_t rows, size_t c,
                         size_t ld, const struct batchnorm_branch branch[2], double *g_sum)
{
    if (dry_run_moves((branch[1].z ? 4 : 3) * rows * c))
        return;
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT) {
        size_t n = size_min(rows - r, ROWS_IN_FLOAT), at = r * ld;
        struct batchnorm_branch b[2] = {branch[0], branch[1]};
        struct batchnorm_mask shifted = mask ? *mask : (struct batchnorm_mask){0};
        for (int i = 0; i < 2; i++)
            b[i].z = b[i].z ? b[i].z + at : NULL;
        shifted.y = shifted.y ? shifted.y + at : NULL;
        batchnorm_mask_sums_rows(g + at, mask ? &shifted : NULL, n, c, ld, b, g_sum);
    }
}

void batchnorm_input_gradient(const float *g, const float *z, size_t rows, size_t c, size_t ld,
                              const float *a, const float *b, const float *c0, float *dz)
{
    if (dry_run_moves(3 * rows * c))
        return;
    for (size_t r = 0; r < rows; r++) {
        const float *gr = g + r * ld, *zr = z + r * ld;
        float *to = dz + r * ld;
        size_t j = 0;
        for (; j + VEC <= c; j += VEC)
            vec_store(to + j, vec_load(a + j) * vec_load(gr + j) +
                                  (vec_load(b + j) * vec_load(zr + j) + vec_load(c0 + j)));
        for (; j < c; j++)
            to[j] = a[j] * gr[j] + (b[j] * zr[j] + c0[j]);
    }
}

enum { BF16_WIDTH = 2, BF16_WIDE = BF16_WIDTH * VEC };

BF16_INLINE void bf16_add_to(double *sum, const vec *part)
{
    for (int v = 0; v < BF16_WIDTH; v++)
        for (int i = 0; i < VEC; i++)
            sum[v * VEC + i] += (double)part[v][i];
}

static void batchnorm_bf16_sums_block(const bf16 *z, size_t rows, size_t c, const float *shift,
                                      double *sum, double *square_sum)
{
    vec s[BF16_WIDTH] = {{0}}, q[BF16_WIDTH] = {{0}};

    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < BF16_WIDTH; v++) {
            vec d = vec_load_bf16(z + r * c + v * VEC) - vec_load(shift + v * VEC);
            s[v] += d;
            q[v] += d * d;
        }
    bf16_add_to(sum, s);
    bf16_add_to(square_sum, q);
}

void batchnorm_bf16_sums(const bf16 *z, size_t rows, size_t c, const float *shift, double *sum,
                         double *square_sum)
{
    if (dry_run_moves_bf16(rows * c))
        return;
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT)
        for (size_t j = 0; j < c; j += BF16_WIDE)
            batchnorm_bf16_sums_block(z + r * c + j, size_min(rows - r, ROWS_IN_FLOAT), c,
                                      shift + j, sum + j, square_sum + j);
}

BF16_INLINE vec bf16_normalised(const bf16 *z, const float *scale, const float *shift)
{
    return vec_load_bf16(z) * vec_load(scale) + vec_load(shift);
}

BF16_INLINE void bf16_apply(const bf16 *z, size_t rows, size_t c, const float *scale,
                            const float *shift, const struct batchnorm_bf16_residual *res,
                            enum residual_kind kind, bool with_relu, bf16 *y, bool native)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < c; j += VEC) {
            size_t at = r * c + j;
            vec v = bf16_normalised(z + at, scale + j, shift + j);
            if (kind == PLAIN_RESIDUAL)
                v += vec_load_bf16(res->rows + at);
            if (kind == SCALED_RESIDUAL)
                v += bf16_normalised(res->rows + at, res->scale + j, res->shift + j);
            vec_store_bf16(y + at, with_relu ? vec_relu(v) : v, native);
        }
}

BF16_INLINE void bf16_apply_kinds(const bf16 *z, size_t rows, size_t c, const float *scale,
                                  const float *shift, const struct batchnorm_bf16_residual *res,
                                  bool with_relu, bf16 *y, bool native)
{
    if (!res || !res->rows)
        with_relu ? bf16_apply(z, rows, c, scale, shift, res, NO_RESIDUAL, true, y, native)
                  : bf16_apply(z, rows, c, scale, shift, res, NO_RESIDUAL, false, y, native);
    else if (!res->scale)
        bf16_apply(z, rows, c, scale, shift, res, PLAIN_RESIDUAL, with_relu, y, native);
    else
        bf16_apply(z, rows, c, scale, shift, res, SCALED_RESIDUAL, with_relu, y, native);
}

void batchnorm_bf16_apply(const bf16 *z, size_t rows, size_t c, const float *scale,
                          const float *shift, const struct batchnorm_bf16_residual *residual,
                          bool relu, bf16 *y)
{
    if (dry_run_moves_bf16((residual && residual->rows ? 3 : 2) * rows * c))
        return;
    if (bf16_converts())
        bf16_apply_kinds(z, rows, c, scale, shift, residual, relu, y, true);
    else
        bf16_apply_kinds(z, rows, c, scale, shift, residual, relu, y, false);
}

/* BF16_WIDE channels from j on. A masked g is unchanged or 0, so it is not rounded. */
BF16_INLINE void bf16_mask_sums_block(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows,
                                      size_t c, size_t j, bool by_y, int branches,
                                      const struct batchnorm_bf16_branch *branch, double *g_sum,
                                      bool native)
{
    vec s[BF16_WIDTH] = {{0}}, p[BF16_WIDTH] = {{0}}, q[BF16_WIDTH] = {{0}};

    for (size_t r = 0; r < rows; r++)
        for (int v = 0; v < BF16_WIDTH; v++) {
            size_t channel = j + (size_t)v * VEC, at = r * c + channel;
            vec x = vec_load_bf16(g + at);
            vec y = by_y ? vec_load_bf16(mask->y + at)
                         : bf16_normalised(branch[0].z + at, mask->scale + channel,
                                           mask->shift + channel);
            x = vec_where_positive(x, y);
            vec_store_bf16(g + at, x, native);
            s[v] += x;
            p[v] += x * (vec_load_bf16(branch[0].z + at) - vec_load(branch[0].mean + channel));
            if (branches > 1)
                q[v] += x * (vec_load_bf16(branch[1].z + at) - vec_load(branch[1].mean + channel));
        }
    bf16_add_to(g_sum + j, s);
    bf16_add_to(branch[0].gz_sum + j, p);
    if (branches > 1)
        bf16_add_to(branch[1].gz_sum + j, q);
}

BF16_INLINE void bf16_mask_sums(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows,
                                size_t c, const struct batchnorm_bf16_branch *branch, double *g_sum,
                                bool native)
{
    for (size_t j = 0; j < c; j += BF16_WIDE)
        if (!mask->y)
            bf16_mask_sums_block(g, mask, rows, c, j, false, 1, branch, g_sum, native);
        else if (!branch[1].z)
            bf16_mask_sums_block(g, mask, rows, c, j, true, 1, branch, g_sum, native);
        else
            bf16_mask_sums_block(g, mask, rows, c, j, true, 2, branch, g_sum, native);
}

void batchnorm_bf16_mask_sums(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows,
                              size_t c, const struct batchnorm_bf16_branch branch[2], double *g_sum)
{
    if (dry_run_moves_bf16((branch[1].z ? 4 : 3) * rows * c))
        return;
    for (size_t r = 0; r < rows; r += ROWS_IN_FLOAT) {
        size_t n = size_min(rows - r, ROWS_IN_FLOAT), at = r * c;
        struct batchnorm_bf16_branch b[2] = {branch[0], branch[1]};
        struct batchnorm_bf16_mask m = *mask;
        for (int i = 0; i < 2; i++)
            b[i].z = b[i].z ? b[i].z + at : NULL;
        m.y = m.y ? m.y + at : NULL;
        if (bf16_converts())
            bf16_mask_sums(g + at, &m, n, c, b, g_sum, true);
        else
            bf16_mask_sums(g + at, &m, n, c, b, g_sum, false);
    }
}

BF16_INLINE void bf16_input_gradient(const bf16 *g, const bf16 *z, size_t rows, size_t c,
                                     const float *a, const float *b, const float *c0, bf16 *dz,
                                     bool native)
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
        bf16_input_gradient(g, z, rows, c, a, b, c0, dz, true);
    else
        bf16_input_gradient(g, z, rows, c, a, b, c0, dz, false);
}
