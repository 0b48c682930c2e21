/*
 * The element-wise half of batch normalisation with its ReLU and residual addition, over rows (r,
 * C) of an NHWC tensor, or over C of its channels: rows lie ld floats apart. Each is a single pass,
 * to be called while the rows are in cache. Sums are taken in float over at most 128 rows, then in
 * double.
 *
 * Forward: y = relu(scale z + shift + residual). Backward, with g the gradient of y masked by y > 0
 * and xhat = (z - mean) / sd: the gradient of z is gamma / sd (g - mean(g) - xhat mean(g xhat)) = a
 * g + b z + c with three numbers a channel, so that it needs the sums of g and g (z - mean) only
 * (Ioffe and Szegedy, arXiv:1502.03167, section 3).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "worker/kernels/bf16.h"

/* Adds sum(z - shift) and sum((z - shift)^2) of each channel. shift (C) near the mean keeps the
 * digits of the variance. */
void batchnorm_sums(const float *z, size_t rows, size_t c, size_t ld, const float *shift,
                    double *sum, double *square_sum);

/* What is added to scale z + shift. All NULL: nothing; scale NULL: rows as they are; else scale
 * rows + shift. */
struct batchnorm_residual {
    const float *rows, *scale, *shift;
};

/* y may be z. */
void batchnorm_apply(const float *z, size_t rows, size_t c, size_t ld, const float *scale,
                     const float *shift, const struct batchnorm_residual *residual, bool relu,
                     float *y);

/* One of the (one or two) normalised tensors whose sum was y, and where its sum goes. */
struct batchnorm_branch {
    const float *z;    /* rows; NULL: there is none */
    const float *mean; /* (C) */
    double *gz_sum;    /* (C) gets sum of g (z - mean) added */
};

/* Where g passes: y > 0. y NULL: scale z + shift of the first branch's z, which has the same sign
 * as the y that batchnorm_apply makes of it. */
struct batchnorm_mask {
    const float *y;             /* rows */
    const float *scale, *shift; /* (C) */
};

/* g = passes ? g : 0 in place (no mask: g stays); adds sum g to g_sum and the branches' sums. */
void batchnorm_mask_sums(float *g, const struct batchnorm_mask *mask, size_t rows, size_t c,
                         size_t ld, const struct batchnorm_branch branch[2], double *g_sum);

/* dz = a g + b z + c; dz may be g. */
void batchnorm_input_gradient(const float *g, const float *z, size_t rows, size_t c, size_t ld,
                              const float *a, const float *b, const float *c0, float *dz);

/*
 * batchnorm.h on bf16 tensors: what is read is widened, computed in fp32 as there, and
 * rounded once when it is written. Channels are multiples of 32.
 */

void batchnorm_bf16_sums(const bf16 *z, size_t rows, size_t c, const float *shift, double *sum,
                         double *square_sum);

/* As struct batchnorm_residual. */
struct batchnorm_bf16_residual {
    const bf16 *rows;
    const float *scale, *shift;
};

/* y = relu(scale z + shift + residual); y may be z. */
void batchnorm_bf16_apply(const bf16 *z, size_t rows, size_t c, const float *scale,
                          const float *shift, const struct batchnorm_bf16_residual *residual,
                          bool relu, bf16 *y);

/* As struct batchnorm_branch: z NULL: there is none. */
struct batchnorm_bf16_branch {
    const bf16 *z;
    const float *mean;
    double *gz_sum;
};

/* As struct batchnorm_mask: y NULL: the sign of scale z + shift of the first branch's z. */
struct batchnorm_bf16_mask {
    const bf16 *y;
    const float *scale, *shift;
};

/* g = passes ? g : 0 in place, and adds the sums of g and g (z - mean). */
void batchnorm_bf16_mask_sums(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows,
                              size_t c, const struct batchnorm_bf16_branch branch[2],
                              double *g_sum);

/* dz = a g + b z + c; dz may be g. */
void batchnorm_bf16_input_gradient(const bf16 *g, const bf16 *z, size_t rows, size_t c,
                                   const float *a, const float *b, const float *c0, bf16 *dz);
