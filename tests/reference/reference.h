/*
 * The plain twins of the kernels, layers and optimisers: the same results from the definition,
 * element by element and in double. Arguments are those of the function without _reference.
 */
#pragma once

#include "worker/kernels/batchnorm.h"
#include "worker/kernels/bf16.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/window.h"
#include "worker/kernels/pool.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/kernels/winograd.h"
#include "worker/layers/conv.h"
#include "worker/layers/linear.h"
#include "worker/model/init.h"
#include "worker/optim/update.h"

void batchnorm_sums_reference(const float *z, size_t rows, size_t c, const float *shift,
                              double *sum, double *square_sum);
void batchnorm_apply_reference(const float *z, size_t rows, size_t c, const float *scale,
                               const float *shift, const struct batchnorm_residual *residual,
                               bool relu, float *y);
void batchnorm_mask_sums_reference(float *g, const struct batchnorm_mask *mask, size_t rows,
                                   size_t c, const struct batchnorm_branch branch[2],
                                   double *g_sum);
void batchnorm_input_gradient_reference(const float *g, const float *z, size_t rows, size_t c,
                                        const float *a, const float *b, const float *c0, float *dz);

/* Of one kind of instruction (BF16_EMULATED: as BF16_AMX). */
void bf16_multiply_reference(enum bf16_kind kind, const struct bf16_product *p, size_t rows,
                             float *c, size_t ldc, bool add);

void gemm_reference(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                    const float *a, size_t lda, const float *b, size_t ldb, float *c, size_t ldc,
                    bool add);

void im2col_reference(const struct window *w, const float *x, size_t row0, size_t rows, float *col);
void col2im_reference(const struct window *w, const float *col, size_t row0, size_t rows,
                      float *dx);

void pool_max_reference(const struct window *w, const float *x, int n, float *y, uint8_t *tap);
void pool_max_backward_reference(const struct window *w, const float *dy, const uint8_t *tap, int n,
                                 float *dx);
void pool_blur_reference(const struct window *w, const float *x, int n, float *y);
void pool_blur_backward_reference(const struct window *w, const float *dy, int n, float *dx);
void pool_average_reference(const float *x, int n, int pixels, int c, float *y);

double softmax_loss_reference(enum job_loss kind, const double *logits, int32_t label, int classes,
                              double smoothing, const double *weights); /* NULL: none */

void winograd_input_reference(struct winograd_tile t, const float *const *pixels, size_t channels,
                              float *v, size_t ld);
void winograd_output_reference(struct winograd_tile t, const float *v, size_t ld, size_t channels,
                               float *const *pixels, bool add);
void winograd_output_gradient_reference(struct winograd_tile t, const float *const *pixels,
                                        size_t channels, float *v, size_t ld);
void winograd_kernel_reference(int m, const float *w, ptrdiff_t tap_ld, size_t channels, float *u,
                               size_t ld);
void winograd_kernel_gradient_reference(int m, const float *u, size_t ld, size_t channels,
                                        float *dw, size_t tap_ld, bool add);

/* Of the whole batch. dx and dw are overwritten. */
void conv_forward_reference(const struct conv *c, const float *w, const float *x, float *z, int n);
void conv_backward_reference(const struct conv *c, const float *w, const float *x, const float *dz,
                             int n, float *dx, float *dw);

void linear_forward_reference(const struct linear *l, const float *w, const float *b,
                              const float *x, size_t n, float *y);
void linear_backward_reference(const struct linear *l, const float *w, const float *x,
                               const float *dy, size_t n, float *dw, float *db, float *dx);

/* One number after the other; the bits are those of normal_fill. */
void normal_fill_reference(float *x, size_t count, double sd, struct rng stream);

/* Of a whole tensor; norms are in double, too. */
typedef void optim_reference(const struct job_optimizer_keys *keys, const struct optim_step *step,
                             float *w, float *const state[], const float *g, size_t n);
optim_reference *optim_reference_of(enum job_optimizer name);
