/*
 * Winograd's minimal filtering (kernels/winograd.h) for 3x3 convolutions of stride 1, padded by 1:
 * groups of tiles are transformed, multiplied position by position with the transformed weights,
 * and transformed back, so that a group stays in the cache.
 *
 * The input gradient is the same convolution of dz with the kernel turned by 180 degrees and its
 * channels swapped. The weight gradient is summed over all tiles in the transformed domain, and
 * transformed back once.
 */
#ifndef TRAIND_WORKER_LAYERS_CONV_WINOGRAD_H
#define TRAIND_WORKER_LAYERS_CONV_WINOGRAD_H

#include "worker/layers/conv.h"

/* Can it be used for this convolution? Channels are multiples of TILE_COLUMNS. */
bool conv_winograd_takes(const struct conv *c);

/* Images that are worth working on together: enough tiles to pay for reading all weights. */
size_t conv_winograd_images(const struct conv *c, enum conv_winograd m);

/* Floats of the arguments below. */
size_t conv_winograd_weights_floats(const struct conv *c, enum conv_winograd m); /* u, sums */
size_t conv_winograd_work_floats(const struct conv *c, enum conv_winograd m);    /* work */

/* Those of the transformed weights fit no core's cache: they are worth reading for a whole batch
 * only. */
bool conv_winograd_has_large_weights(const struct conv *c, enum conv_winograd m);

/* The transformed weights, packed for the products: of the forward direction, or turned. */
void conv_winograd_pack(const struct conv *c, enum conv_winograd m, bool turned,
                        struct conv_share share, const float *w, float *u);

/* z (N, out, out, c_out) from x; turned: dx from dz. done may be NULL. */
struct conv_winograd_pass {
    enum conv_winograd m;
    bool turned, add; /* add: to what is there */
    const float *u, *from;
    float *to, *work;
    conv_rows *done;
    void *context;
};

/* Of the images [first, end). */
void conv_winograd_run(const struct conv *c, const struct conv_winograd_pass *p, size_t first,
                       size_t end);

/* The transformed weight gradient: to sums, or added. */
struct conv_winograd_sums {
    enum conv_winograd m;
    const float *x, *dz;
    float *sums;
    bool add;
    float *work;
};

/* From the images [first, end). */
void conv_winograd_sum_weights(const struct conv *c, const struct conv_winograd_sums *p,
                               size_t first, size_t end);
void conv_winograd_finish_weights(const struct conv *c, enum conv_winograd m,
                                  struct conv_share share, const float *sums, float *dw, bool add);

/*
 * The same by several threads that share one work and one sums: for each group of tiles the steps
 * in this order, each begun after all threads have done the one before. Tiles are shared out by
 * rows, products by positions. Sums have no third step.
 */
enum conv_winograd_step {
    CONV_WINOGRAD_TRANSFORM,
    CONV_WINOGRAD_MULTIPLY,
    CONV_WINOGRAD_BACK,
    CONV_WINOGRAD_STEPS
};
void conv_winograd_begin(const struct conv *c, enum conv_winograd m, bool turned,
                         float *work); /* by one thread, before the first step */
size_t conv_winograd_groups(const struct conv *c, enum conv_winograd m, size_t images);
void conv_winograd_run_step(const struct conv *c, const struct conv_winograd_pass *p, size_t images,
                            size_t group, enum conv_winograd_step step, struct conv_share share);
void conv_winograd_sum_step(const struct conv *c, const struct conv_winograd_sums *p, size_t images,
                            size_t group, enum conv_winograd_step step, struct conv_share share);

#endif
