/*
 * Element-wise part of batch normalisation, with ReLU and residual addition, on rows (r, C) of an
 * NHWC tensor or on C of its channels; rows are ld numbers apart. Each function is a single pass
 * over rows in cache. Sums are in float over at most 128 rows, then in double.
 *
 * Forward: y = relu(scale z + shift + residual). Backward, with g the gradient of y masked by y > 0
 * and xhat = (z - mean) / sd: the gradient of z is gamma / sd (g - mean(g) - xhat mean(g xhat)) = a
 * g + b z + c, which needs the sums of g and g (z - mean) only (Ioffe and Szegedy,
 * arXiv:1502.03167, section 3).
 *
 * Tensors are void pointers, of floats here and of bf16 in the functions batchnorm_bf16_... below,
 * which compute in fp32 and round once when they write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Adds sum(z - shift) and sum((z - shift)^2) per channel; shift (C) should be near the mean. */
void batchnorm_sums(const void *z, size_t rows, size_t c, size_t ld, const float *shift,
                    double *sum, double *square_sum);

/* Addend of scale z + shift. All NULL: none; scale NULL: rows; else scale rows + shift */
struct batchnorm_residual {
    const void *rows;
    const float *scale, *shift;
};

/* y may be z. */
void batchnorm_apply(const void *z, size_t rows, size_t c, size_t ld, const float *scale,
                     const float *shift, const struct batchnorm_residual *residual, bool relu,
                     void *y);

/* One of the one or two normalised tensors that y is the sum of */
struct batchnorm_branch {
    const void *z;     /* rows; NULL: absent */
    const float *mean; /* (C) */
    double *gz_sum;    /* (C); sum of g (z - mean) is added */
};

/* g passes where y > 0. y NULL: where scale z + shift of the first branch is positive. */
struct batchnorm_mask {
    const void *y;              /* rows */
    const float *scale, *shift; /* (C) */
};

/* g = passes ? g : 0 in place (mask NULL: unchanged); adds sum g to g_sum, and the branches' */
void batchnorm_mask_sums(void *g, const struct batchnorm_mask *mask, size_t rows, size_t c,
                         size_t ld, const struct batchnorm_branch branch[2], double *g_sum);

/* dz = a g + b z + c; dz may be g. */
void batchnorm_input_gradient(const void *g, const void *z, size_t rows, size_t c, size_t ld,
                              const float *a, const float *b, const float *c0, void *dz);

__typeof__(batchnorm_sums) batchnorm_bf16_sums;
__typeof__(batchnorm_apply) batchnorm_bf16_apply;
__typeof__(batchnorm_mask_sums) batchnorm_bf16_mask_sums;
__typeof__(batchnorm_input_gradient) batchnorm_bf16_input_gradient;
