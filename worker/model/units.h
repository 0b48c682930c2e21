/*
 * Internal structures of a model: units (convolution + batch norm), grouped into residual blocks,
 * after a stem and before an average pool and a classifier.
 *
 * A unit's z (N, out, out, C) is the convolution's output, y the activation after batch norm and
 * ReLU. The last unit of a block and its downsample unit have no y: the block's `out` = relu(bn(z)
 * + shortcut). All share one arena by lifetime: common/net/activations.h plans which are kept and
 * which are recomputed. They are void pointers to numbers of the model's precision (precision.h).
 */
#pragma once

#include <string.h>

#include "common/net/activations.h"
#include "worker/kernels/batchnorm.h"
#include "worker/kernels/bf16.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/layers/conv.h"
#include "worker/layers/linear.h"
#include "worker/model/model_config.h"

struct unit {
    struct conv conv;
    char name[48], bn_name[48];     /* bn_name "": bias instead of batch norm, at beta */
    size_t weight, gamma, beta;     /* offsets in the parameters */
    size_t grads_end;               /* end of the range that starts at weight */
    size_t mean, var;               /* offsets in the running statistics */
    bool frozen;                    /* computed as in evaluation, without backward */
    bool starts_at_zero;            /* gamma, with zero_init_residual */
    void *z, *y, *y_again, *g, *dz; /* struct activation_unit */
    struct window blur;             /* of model.blur_pool, before conv; stride 0: none */
    void *x, *x_again, *g_x;        /* its output */
    float *batch_mean, *inv_sd;     /* (C), of the last forward */
    float *scale, *shift;           /* (C): normalised = scale z + shift */
    float *ga, *gb, *gc;            /* (C): dz = ga g + gb z + gc */
};

struct block {
    int first, units;          /* the main path */
    int downsample;            /* unit of the shortcut, or -1 */
    void *out, *out_again, *g; /* (N, s, s, C): struct activation_block */
    int derive;
};

/* Sums of one piece of a pass (parallel.h); zero between passes */
struct thread_accumulator {
    double *sum, *square_sum; /* (largest C); backward: sums of g and of g (z - mean) */
    union {
        double *rows;       /* forward (largest C): number of rows summed */
        double *branch_sum; /* backward: for the shortcut's batch norm */
    };
    float *shift; /* (largest C) */
};

/* What depends on the size of the images. Units of all sizes share the arrays of channels. */
struct layout {
    int image_size;
    int batch;     /* maximum number of images */
    bool predicts; /* for model_predict only */
    struct unit *units;
    struct block *blocks;
    struct window pool, pool_blur; /* the latter with model.blur_pool; else stride 0 */
    void *in, *in_again, *g_in;    /* of the first block: pooled, or the stem's y */
    void *maxima, *g_maxima;       /* (N, pool.out, pool.out, 64), between the two windows */
    uint8_t *tap;                  /* (N, pool.out, pool.out, 64) */
};

struct precision_ops;

#define MODEL_MAGIC 0x4d6f4431

struct model {
    unsigned magic;
    struct model_config config;
    const struct precision_ops *ops;
    struct layout layouts[MODEL_SIZES_MAX + 1];
    int layout_count;
    int max_images;        /* largest batch of the layouts */
    struct layout *layout; /* current one */
    int unit_count, block_count;
    int frozen_blocks; /* the first ones */
    bool evaluating;

    struct model_tensor *tensors;
    size_t tensor_count, trainable_count;
    size_t first_trained;  /* offset in the parameters */
    size_t frozen_tensors; /* the first of these */
    float *params, *grads, *stats;
    size_t param_count, stat_count;
    size_t fc_weight, fc_bias;
    int features; /* inputs of the classifier */

    bool pools; /* has the ImageNet stem */
    void *arena;
    size_t arena_bytes;
    bf16 *packed;               /* weights of the current convolution: conv_bf16.h */
    struct cnn *cnn;            /* of arch cnn, which has no blocks; else NULL */
    float *head;                /* (N, features): averages, or cnn's hidden units */
    float *logits;              /* (N, classes): then probabilities, then their gradient */
    float *d_head;              /* (N, features) */
    struct softmax_row *losses; /* (N) */

    struct thread_accumulator *accumulators; /* [parallel_lanes(threads)] */
    float **own;                             /* [threads]: a thread's memory for convolutions */
    float *team;                             /* memory of the team for convolutions */
    size_t team_floats, own_floats;          /* of both */
    float **dw; /* [threads], with bf16: partial weight gradients of all but the first */
    size_t memory_bytes;

    double moved_bytes, moved_images; /* so far: traffic.h */

    int n;              /* of the last forward */
    const void *images; /* float or bf16 */
    const int32_t *labels;
    double mixed; /* 1 - lambda of model_mix */
    const double *class_weights;
    struct model_draw draw;
};

/* Zeroed, 64-byte aligned, counted in memory_bytes; NULL with *e filled. Of shared memory each
 * thread first writes an equal part. */
void *model_allocate(struct model *m, size_t bytes, struct error *e);
void *model_allocate_shared(struct model *m, size_t bytes, struct error *e);
int model_allocate_floats(struct model *m, float **p, size_t floats, struct error *e);
/* The threads' scratch m->own, each first written by its own thread */
int model_allocate_own(struct model *m, size_t bytes, struct error *e);
void *model_count_memory(struct model *m, void *p, size_t bytes, struct error *e);

/* Make one unit, or the units and accumulators of these convolutions. */
struct unit model_make_unit(const struct arch_conv *c, const struct model_config *config);
void model_make_units(struct model *m, const struct arch_conv *convs, int count);

static inline size_t unit_pixels(const struct unit *u)
{
    return (size_t)u->conv.window.out * (size_t)u->conv.window.out;
}

/* Whether it is normalised by the running statistics, in place, and needs no backward */
static inline bool unit_evaluates(const struct model *m, const struct unit *u)
{
    return m->evaluating || u->frozen;
}

static inline size_t unit_channels(const struct unit *u)
{
    return (size_t)u->conv.out_channels;
}

/* Operations of the forward convolution; backward takes twice as many. */
static inline double unit_flops(const struct unit *u, int n)
{
    return 2.0 * n * (double)conv_weights(&u->conv) * (double)unit_pixels(u);
}

/* Operations of a low-pass filter in either direction */
static inline double unit_blur_flops(const struct window *w, int n)
{
    return 18.0 * n * w->out * w->out * w->channels;
}

/* Last unit of the main path. */
static inline struct unit *block_last(const struct model *m, const struct block *b)
{
    return &m->layout->units[b->first + b->units - 1];
}

/* Unit of its shortcut, or NULL */
static inline struct unit *block_shortcut(const struct model *m, const struct block *b)
{
    return b->downsample >= 0 ? &m->layout->units[b->downsample] : NULL;
}

static inline bool model_trains_classifier_only(const struct model *m)
{
    return m->first_trained == m->fc_weight;
}

struct announcement {
    model_grads_ready *ready;
    void *context;
};

static inline void model_announce(const struct announcement *a, size_t offset, size_t end)
{
    if (a->ready)
        a->ready(offset, end - offset, a->context);
}

static inline bool model_uses_tile(const struct model *m)
{
    return !strcmp(conv_gemm_name(m->config.gemm), "own");
}

static inline struct linear model_classifier(const struct model *m)
{
    return (struct linear){(size_t)m->features, (size_t)m->config.classes,
                           m->config.threads > 1 && model_uses_tile(m)};
}

static inline struct softmax_target model_target(const struct model *m)
{
    return (struct softmax_target){m->config.loss,  m->config.classes, m->config.label_smoothing,
                                   1 - m->mixed,    m->labels,         m->n,
                                   m->class_weights};
}

static inline struct conv_memory model_memory(const struct model *m)
{
    return (struct conv_memory){m->team, m->own, m->team_floats, m->own_floats, m->config.threads};
}

static inline struct thread_accumulator *model_accumulator(const struct model *m)
{
    return &m->accumulators[parallel_lane()];
}

/* Units of sharing for the classifier's products */
enum { MODEL_IMAGES_AT_ONCE = 8, MODEL_COLUMNS_AT_ONCE = 32 };

static inline int model_matrix_parts(size_t images, size_t columns, struct parallel_share share,
                                     struct parallel_block part[PARALLEL_BLOCKS])
{
    size_t units = (images + MODEL_IMAGES_AT_ONCE - 1) / MODEL_IMAGES_AT_ONCE;
    return parallel_matrix(images, units, columns, MODEL_COLUMNS_AT_ONCE, share, part);
}

/* A share of its channels. */
static inline struct parallel_range unit_channel_share(const struct unit *u,
                                                       struct parallel_share share)
{
    size_t blocks = (unit_channels(u) + 15) / 16;
    struct parallel_range r = parallel_range(blocks, share);
    return (struct parallel_range){16 * r.first, r.end == blocks ? unit_channels(u) : 16 * r.end};
}

/* Applies dropout to image i's row of the head, or of its gradient. */
static inline void model_drop(const struct model *m, int i, float *row)
{
    const struct model_draw *d = &m->draw;
    int64_t epoch = d->epoch + (d->indices && i >= d->next_epoch_at);
    int64_t image = d->indices ? d->first_number + d->indices[i] : i;

    if (m->config.dropout > 0)
        dropout_apply(row, (size_t)m->features, m->config.dropout,
                      rng_stream(d->seed, epoch, image, RNG_DROPOUT));
}

static inline const char *model_trace_category(const struct model *m)
{
    return m->evaluating ? "predict" : "forward";
}

/* Before and after passes over the images. After a barrier each thread adds the sums of all lanes
 * for its share of the channels, in order, and then clears them. */
void unit_clear_sums(struct model *m, const struct unit *u, struct parallel_share share);
void unit_finish_statistics(struct model *m, struct unit *u, int n, struct parallel_share share);
void unit_use_running_statistics(struct model *m, struct unit *u);
/* Gradients of gamma and beta, and ga, gb, gc, from square_sum, or branch_sum for a shortcut */
void unit_finish_gradients(struct model *m, struct unit *u, int n, bool shortcut, bool accumulate,
                           struct parallel_share share);
