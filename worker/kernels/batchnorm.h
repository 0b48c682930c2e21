/*
 * Element-wise part of batch normalisation, with ReLU and residual addition, on rows (r, C) of an
 * NHWC tensor or on C of its channels; rows are ld floats apart. Each function is a single pass
 * over rows in cache. Sums are in float over at most 128 rows, then in double.
 *
 * Forward: y = relu(scale z + shift + residual). Backward, with g the gradient of y masked by y > 0
 * and xhat = (z - mean) / sd: the gradient of z is gamma / sd (g - mean(g) - xhat mean(g xhat)) = a
 * g + b z + c, which needs the sums of g and g (z - mean) only (Ioffe and Szegedy,
 * arXiv:1502.03167, section 3).
 *
 * The bf16 functions compute in fp32 and round once when they write; channels are multiples of 32.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "worker/kernels/bf16.h"

/* Adds sum(z - shift) and sum((z - shift)^2) per channel; shift (C) should be near the mean. */
void batchnorm_sums(const float *z, size_t rows, size_t c, size_t ld, const float *shift,
                    double *sum, double *square_sum);

/* Addend of scale z + shift. All NULL: none; scale NULL: rows; else scale rows + shift */
struct batchnorm_residual {
    const float *rows, *scale, *shift;
};

/* y may be z. */
void batchnorm_apply(const float *z, size_t rows, size_t c, size_t ld, const float *scale,
                     const float *shift, const struct batchnorm_residual *residual, bool relu,
                     float *y);

/* One of the one or two normalised tensors that y is the sum of */
struct batchnorm_branch {
    const float *z;    /* rows; NULL: absent */
    const float *mean; /* (C) */
    double *gz_sum;    /* (C); sum of g (z - mean) is added */
};

/* g passes where y > 0. y NULL: where scale z + shift of the first branch is positive. */
struct batchnorm_mask {
    const float *y;             /* rows */
    const float *scale, *shift; /* (C) */
};

/* g = passes ? g : 0 in place (mask NULL: unchanged); adds sum g to g_sum, and the branches' */
void batchnorm_mask_sums(float *g, const struct batchnorm_mask *mask, size_t rows, size_t c,
                         size_t ld, const struct batchnorm_branch branch[2], double *g_sum);

/* dz = a g + b z + c; dz may be g. */
void batchnorm_input_gradient(const float *g, const float *z, size_t rows, size_t c, size_t ld,
                              const float *a, const float *b, const float *c0, float *dz);

void batchnorm_bf16_sums(const bf16 *z, size_t rows, size_t c, const float *shift, double *sum,
                         double *square_sum);

struct batchnorm_bf16_residual {
    const bf16 *rows;
    const float *scale, *shift;
};

/* y may be z. */
void batchnorm_bf16_apply(const bf16 *z, size_t rows, size_t c, const float *scale,
                          const float *shift, const struct batchnorm_bf16_residual *residual,
                          bool relu, bf16 *y);

struct batchnorm_bf16_branch {
    const bf16 *z;
    const float *mean;
    double *gz_sum;
};

struct batchnorm_bf16_mask {
    const bf16 *y;
    const float *scale, *shift;
};

void batchnorm_bf16_mask_sums(bf16 *g, const struct batchnorm_bf16_mask *mask, size_t rows,
                              size_t c, const struct batchnorm_bf16_branch branch[2],
                              double *g_sum);

void batchnorm_bf16_input_gradient(const bf16 *g, const bf16 *z, size_t rows, size_t c,
                                   const float *a, const float *b, const float *c0, bf16 *dz);
