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
    double width;                      /* 0: 1 */
    int classes, image_size;           /* the first one is this */
    int more_sizes[MODEL_SIZES_MAX];   /* that model_use_size can change to; 0 ends them */
    int more_batches[MODEL_SIZES_MAX]; /* of these sizes, as batch; 0: batch */
    int eval_size;                     /* one more, for model_predict alone; 0: none */
    double dropout;                    /* rate; 0: none */
    int batch;          /* the largest number of images a call gets, of image_size and
                           eval_size */
    bool inference;     /* evaluation only: no memory for backward */
    int threads;        /* OpenMP threads of this rank, >= 1 */
    double bn_momentum; /* torch's: 1 - bn_decay */
    bool zero_init_residual;
    double label_smoothing;
    enum job_gemm gemm;                /* 0: auto */
    enum job_precision precision;      /* of activations and products; 0: fp32 */
    bool bf16_images;                  /* with precision bf16: so are the images given */
    const struct model_tuning *tuning; /* tune.h; NULL: no Winograd. Read by model_create only */
};

static inline struct arch_shape model_shape(const struct model_config *c)
{
    return (struct arch_shape){c->arch, c->stem, c->width, c->classes, c->image_size};
}

/* Called as backward goes: the gradients [offset, offset + count) are final. Ranges come from the
 * end of the buffer to its beginning, without holes. */
typedef void model_grads_ready(size_t offset, size_t count, void *context);

/* Keys of dropout's random numbers: see model_draw */
struct model_draw {
    int64_t seed, epoch;
    int next_epoch_at; /* images from this one on are of epoch + 1 */
    int64_t first_number;
    const int64_t *indices;
};
