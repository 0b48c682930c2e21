/*
 * batchnorm.h on bf16 tensors: what is read is widened, computed in fp32 as there, and
 * rounded once when it is written. Channels are multiples of 32.
 */
#pragma once

#include "worker/kernels/bf16/bf16.h"

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
