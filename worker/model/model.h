/*
 * A network of common/net/arch.h: forward, loss, backward, on one rank. NHWC; convolutions are
 * matrix products, by the engine's kernels or im2col and OpenBLAS (layers/conv.h). All is fp32;
 * with precision bf16, activations, their gradients and what the convolutions multiply are bf16
 * (layers/conv_bf16.h).
 *
 * All parameters lie in one flat buffer in forward order, their gradients in a second one of the
 * same layout, so that an all-reduce bucket is a range of it; backward completes gradients from the
 * end of the buffer to its beginning. Running statistics lie in a third. Storage layouts are the
 * engine's own; model_tensor_export/import convert to torchvision's (OIHW).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/net/arch.h"

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

enum model_tensor_kind {
    MODEL_CONV_WEIGHT,
    MODEL_CONV_BIAS, /* where there is no batch norm */
    MODEL_BN_GAMMA,
    MODEL_BN_BETA,
    MODEL_FC_WEIGHT,
    MODEL_FC_BIAS,
    MODEL_BN_MEAN, /* running; in the statistics buffer, as is the next */
    MODEL_BN_VAR
};

struct model_tensor {
    char name[64]; /* torchvision's: "layer1.0.conv2.weight" */
    enum model_tensor_kind kind;
    int dims;
    int64_t shape[4]; /* torchvision's: (O, I, kh, kw) for convolutions */
    size_t offset;    /* floats, in the parameter (or statistics) buffer */
    size_t count;     /* floats */
    int64_t pixels;   /* of MODEL_FC_WEIGHT: shape[1] is so many pixels times channels, channel by
                         channel in torch and pixel by pixel here */
};

struct model;

int model_create(const struct model_config *config, struct model **out, struct error *e);
void model_destroy(struct model *m); /* NULL is fine */

/* Kaiming fan_out normal for convolutions, torch's uniform for the classifier, gamma 1 (0 for the
 * last of a block if zero_init_residual), beta 0, running mean 0 and variance 1. cnn: Glorot's
 * uniform for all weights, biases 0, as TensorFlow's layers start. The same seed
 * gives the same bits on any machine of the same libm. */
void model_init(struct model *m, int64_t seed);

float *model_params(struct model *m);
float *model_grads(struct model *m);
float *model_stats(struct model *m);             /* running means and variances */
size_t model_param_count(const struct model *m); /* floats, padding included */
size_t model_stat_count(const struct model *m);
size_t model_tensor_count(const struct model *m); /* trainable ones first, then the statistics */
const struct model_tensor *model_tensor(const struct model *m, size_t i);
void model_tensor_export(const struct model *m, size_t i, float *torch_layout);
void model_tensor_import(struct model *m, size_t i, const float *torch_layout);

/* From now on images have this size: image_size, one of more_sizes, or eval_size. Weights, running
 * statistics and gradients stay; every size has its own plan of the one arena and its own choice of
 * kernels, made once by model_create. Not between a model_forward and its model_backward. */
void model_use_size(struct model *m, int image_size);

/* Training forward with batch statistics; updates the running ones. Returns the mean loss over the
 * n images. images (n, S, S, arch_image_channels), floats (or bf16: bf16_images), must stay valid
 * until backward is done. correct (NULL: not wanted) counts top-1 hits. */
double model_forward(struct model *m, const void *images, const int32_t *labels, int n,
                     int *correct);

/* From the next model_forward on, image i of a batch is lambda of itself and 1 - lambda of image
 * n-1-i (the caller has mixed them), and its loss is lambda CE(its label) + (1 - lambda) CE(label
 * of n-1-i). 1, as at first: not mixed. */
void model_mix(struct model *m, double lambda);

/* Names the images of the next model_forward for the random numbers of dropout: image i has the
 * stream (seed, its epoch, first_number + indices[i]). indices must stay valid until backward is
 * done; NULL, as at first: image i is number i. */
struct model_draw {
    int64_t seed, epoch;
    int next_epoch_at; /* images from this one on are of epoch + 1 */
    int64_t first_number;
    const int64_t *indices;
};
void model_draw(struct model *m, const struct model_draw *draw);

/* Called as backward goes: the gradients [offset, offset + count) are final. Ranges come from the
 * end of the buffer to its beginning, without holes. */
typedef void model_grads_ready(size_t offset, size_t count, void *context);

/* Backward of the last model_forward. Gradients are of the mean loss times scale (1 / world_size
 * makes a sum over ranks the mean over the global batch); they overwrite the buffer, or are added
 * to it if accumulate. */
void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context);

/* Evaluation forward with running statistics: logits (n, classes). */
void model_predict(struct model *m, const void *images, int n, float *logits);

/* In training, use the running statistics instead of the batch's (and leave them alone): for tests
 * of exactness and fine-tuning. */
void model_freeze_bn(struct model *m, bool frozen);

size_t model_memory_bytes(const struct model *m); /* what this model allocated */
int model_threads(const struct model *m);         /* of its configuration */
