/* Configuration of a model, and the arguments of its passes */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/error.h"
#include "common/net/arch.h"

struct model;
struct model_tuning;

enum { MODEL_SIZES_MAX = JOB_SIZES_MAX + 1 };

struct model_config {
    const struct arch *arch;
    enum job_stem stem;
    double width;                      /* 0 means 1 */
    int classes, image_size;           /* the initial size */
    int more_sizes[MODEL_SIZES_MAX];   /* further sizes for model_use_size, ended by 0 */
    int more_batches[MODEL_SIZES_MAX]; /* batch for these sizes; 0: batch */
    int eval_size;                     /* one more size, for model_predict only; 0: none */
    double dropout;                    /* rate; 0: none */
    int batch;          /* maximum number of images per call, at image_size and eval_size */
    bool inference;     /* evaluation only: no memory for backward */
    int frozen;         /* the first so many parts are not trained: struct arch_shape */
    int threads;        /* OpenMP threads of this rank, >= 1 */
    double bn_momentum; /* torch's: 1 - bn_decay */
    bool frozen_bn;     /* training uses the running statistics and leaves them unchanged, so that
                           an image's gradients do not depend on the others: for exact tests */
    bool blur_pool;
    enum job_bn_init bn_init;
    bool zero_init_residual;
    enum job_loss loss;
    double label_smoothing;
    enum job_gemm gemm;                /* 0: auto */
    enum job_precision precision;      /* 0: fp32 */
    bool bf16_images;                  /* with precision bf16: images are bf16 too */
    const struct model_tuning *tuning; /* tuning.h; NULL: no Winograd. Read by model_create only */
};

static inline struct arch_shape model_shape(const struct model_config *c)
{
    return (struct arch_shape){c->arch,       c->stem,      c->width, c->classes,
                               c->image_size, c->blur_pool, c->frozen};
}

/* Called during backward, from the buffer's end on: gradients [offset, offset + count) are final */
typedef void model_grads_ready(size_t offset, size_t count, void *context);

struct model_draw {
    int64_t seed, epoch;
    int next_epoch_at; /* first image of epoch + 1 */
    int64_t first_number;
    const int64_t *indices;
};
