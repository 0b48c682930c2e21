#include "tests/reference/reference.h"

void batchnorm_sums_reference(const float *z, size_t rows, size_t c, const float *shift,
                              double *sum, double *square_sum)
{
    for (size_t i = 0; i < rows * c; i++) {
        double d = (double)z[i] - shift[i % c];
        sum[i % c] += d;
        square_sum[i % c] += d * d;
    }
}

void batchnorm_apply_reference(const float *z, size_t rows, size_t c, const float *scale,
                               const float *shift, const struct batchnorm_residual *residual,
                               bool relu, float *y)
{
    const float *rows_added = residual ? residual->rows : NULL;

    for (size_t i = 0; i < rows * c; i++) {
        size_t j = i % c;
        double v = (double)z[i] * scale[j] + shift[j];
        if (rows_added)
            v += residual->scale ? (double)rows_added[i] * residual->scale[j] + residual->shift[j]
                                 : rows_added[i];
        y[i] = (float)(relu && v < 0 ? 0 : v);
    }
}

void batchnorm_mask_sums_reference(float *g, const struct batchnorm_mask *mask, size_t rows,
                                   size_t c, const struct batchnorm_branch branch[2], double *g_sum)
{
    const float *mask_y = mask ? mask->y : NULL, *z[2] = {branch[0].z, branch[1].z};

    for (size_t i = 0; i < rows * c; i++) {
        size_t j = i % c;
        double y = 1;
        if (mask)
            y = mask_y ? mask_y[i] : (double)z[0][i] * mask->scale[j] + mask->shift[j];
        if (!(y > 0))
            g[i] = 0;
        g_sum[j] += g[i];
        for (int b = 0; b < 2; b++)
            if (z[b])
                branch[b].gz_sum[j] += g[i] * ((double)z[b][i] - branch[b].mean[j]);
    }
}

void batchnorm_input_gradient_reference(const float *g, const float *z, size_t rows, size_t c,
                                        const float *a, const float *b, const float *c0, float *dz)
{
    for (size_t i = 0; i < rows * c; i++)
        dz[i] = (float)((double)a[i % c] * g[i] + (double)b[i % c] * z[i] + c0[i % c]);
}
