/*
 * What a precision computes differently: the passes (forward_backward.c) and the memory of a model
 * (model.c) are the same for all, and work on void pointers by this table.
 *
 * fp32: everything is float. bf16: images (perhaps), activations and their gradients are bf16;
 * weights are rounded just before the convolution that reads them; sums, batch norm's numbers,
 * averages, logits and gradients of weights are float.
 */
#pragma once

#include "worker/kernels/pool.h"
#include "worker/model/units.h"

/* Both gradients of a convolution */
struct precision_backward {
    const void *x, *dz;
    void *dx; /* may be NULL */
    bool add_dx, add_dw;
    conv_rows *ready, *done; /* as in struct conv_backward; done may be NULL */
    void *context;
};

struct precision_ops {
    size_t bytes;           /* of a number */
    double winograd_margin; /* part of the direct convolution's time that Winograd may take */
    bool shares_rows; /* passes give each thread one range of whole rows, instead of pieces of rows
                   and channels: another order of sums */
    void (*to_floats)(const void *from, size_t n, float *to);

    /* a thread's part of a convolution of m->n images; the caller waits for the other threads */
    void (*forward)(struct model *m, const struct unit *u, const void *x,
                    struct parallel_share share, conv_rows *done, void *context);
    void (*backward)(struct model *m, const struct unit *u, const struct precision_backward *b,
                     struct parallel_share share);
    /* Whether x may be written in `ready`, together with dz; else it must be complete before */
    bool (*reads_x_by_rows)(const struct model *m, const struct unit *u, bool wants_dx);
    /* Memory of the convolutions; ERR_UNSUPPORTED if one of them has no kernel */
    int (*allocate)(struct model *m, struct error *e);

    __typeof__(batchnorm_sums) *sums;
    __typeof__(batchnorm_apply) *apply;
    __typeof__(batchnorm_mask_sums) *mask_sums;
    __typeof__(batchnorm_input_gradient) *input_gradient;
    __typeof__(pool_max) *pool_max;
    __typeof__(pool_max_backward) *pool_max_backward;
    __typeof__(pool_blur) *pool_blur;
    __typeof__(pool_average) *pool_average;
    __typeof__(pool_average_backward) *pool_average_backward;
};

extern const struct precision_ops precision_fp32, precision_bf16;

static inline const struct precision_ops *precision_ops_of(enum job_precision precision)
{
    return precision == JOB_PRECISION_BF16 ? &precision_bf16 : &precision_fp32;
}

/* Number i of a tensor */
static inline void *precision_at(const struct model *m, const void *tensor, size_t i)
{
    return (char *)tensor + i * m->ops->bytes;
}

/* A share of a unit's pixels (N out out) and channels. */
static inline int precision_parts(const struct model *m, const struct unit *u,
                                  struct parallel_share share,
                                  struct parallel_block part[PARALLEL_BLOCKS])
{
    size_t rows = (size_t)m->n * unit_pixels(u), columns = unit_channels(u);
    return parallel_matrix(rows, rows, columns, m->ops->shares_rows ? columns : 64, share, part);
}

/* How many of the smallest pieces, of 64 KB, a share of them has */
static inline size_t precision_grains_of(const struct model *m, size_t numbers,
                                         struct parallel_share share)
{
    return m->ops->shares_rows ? 0 : numbers / (size_t)share.parts / (16 * 1024);
}

static inline size_t precision_grains(const struct model *m, const struct unit *u,
                                      struct parallel_share share)
{
    return precision_grains_of(m, (size_t)m->n * unit_pixels(u) * unit_channels(u), share);
}
