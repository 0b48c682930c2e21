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
    for (size_t i = 0; i < rows * c; i++) {
        size_t j = i % c;
        double v = (double)z[i] * scale[j] + shift[j];
        if (residual && residual->rows)
            v += residual->scale
                     ? (double)residual->rows[i] * residual->scale[j] + residual->shift[j]
                     : residual->rows[i];
        y[i] = (float)(relu && v < 0 ? 0 : v);
    }
}

void batchnorm_mask_sums_reference(float *g, const struct batchnorm_mask *mask, size_t rows,
                                   size_t c, const struct batchnorm_branch branch[2], double *g_sum)
{
    for (size_t i = 0; i < rows * c; i++) {
        size_t j = i % c;
        double y = 1;
        if (mask)
            y = mask->y ? mask->y[i] : (double)branch[0].z[i] * mask->scale[j] + mask->shift[j];
        if (!(y > 0))
            g[i] = 0;
        g_sum[j] += g[i];
        for (int b = 0; b < 2; b++)
            if (branch[b].z)
                branch[b].gz_sum[j] += g[i] * ((double)branch[b].z[i] - branch[b].mean[j]);
    }
}

void batchnorm_input_gradient_reference(const float *g, const float *z, size_t rows, size_t c,
                                        const float *a, const float *b, const float *c0, float *dz)
{
    for (size_t i = 0; i < rows * c; i++)
        dz[i] = (float)((double)a[i % c] * g[i] + (double)b[i % c] * z[i] + c0[i % c]);
}
