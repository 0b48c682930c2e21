/*
 * Winograd's minimal filtering (kernels/winograd.h) for 3x3 convolutions of stride 1, padded by 1:
 * groups of tiles are transformed, multiplied position by position with the transformed weights,
 * and transformed back, so that a group stays in the cache.
 *
 * The input gradient is the same convolution of dz with the kernel turned by 180 degrees and its
 * channels swapped. The weight gradient is summed over all tiles in the transformed domain, and
 * transformed back once.
 */
#pragma once

#include "worker/layers/conv_shape.h"

/* Can it be used for this convolution? Channels are multiples of tile_columns(). */
bool conv_winograd_takes(const struct conv *c);

/* Images that are worth working on together: enough tiles to pay for reading all weights. */
size_t conv_winograd_images(const struct conv *c, enum conv_winograd m);

/* Floats of the arguments below. */
size_t conv_winograd_weights_floats(const struct conv *c, enum conv_winograd m); /* u, sums */
size_t conv_winograd_work_floats(const struct conv *c, enum conv_winograd m);    /* work */

/* The transformed weights, packed for the products: of the forward direction, or turned. */
void conv_winograd_pack(const struct conv *c, enum conv_winograd m, bool turned,
                        struct parallel_share share, const float *w, float *u);

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
                                  struct parallel_share share, const float *sums, float *dw,
                                  bool add);

/*
 * The same of the images [0, images) by a team, each thread of which calls it. Tiles and their
 * channels are shared out for the transforms, register tiles of all positions for the products,
 * so that weights are made and read once; tiles alone where the weights fit each core's cache and
 * there are enough tiles. u, or sums, is the team's memory of conv_winograd_team_floats, `own` the
 * thread's; `work` is not used. What others did is there behind the next barrier.
 */
size_t conv_winograd_team_floats(const struct conv *c, enum conv_winograd m, int images,
                                 int threads);
size_t conv_winograd_own_floats(const struct conv *c, enum conv_winograd m);
void conv_winograd_run_team(const struct conv *c, const struct conv_winograd_pass *p,
                            const float *w, int images, struct parallel_share share, float *own);
/* All threads' sums are there when it returns: conv_winograd_finish_weights may follow. */
void conv_winograd_sum_team(const struct conv *c, const struct conv_winograd_sums *sums, int images,
                            struct parallel_share share);
