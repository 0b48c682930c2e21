/*
 * Winograd's minimal filtering (kernels/winograd.h) for 3x3 convolutions of stride 1, padded by 1:
 * groups of tiles, small enough for the cache, are transformed, multiplied position by position
 * with the transformed weights, and transformed back.
 *
 * The input gradient is the same convolution of dz with the kernel rotated by 180 degrees and its
 * channels swapped. The weight gradient is summed over all tiles before it is transformed back.
 */
#pragma once

#include "worker/layers/conv_shape.h"

/* Channels must be multiples of tile_columns(). */
bool conv_winograd_takes(const struct conv *c);

/* Images to process together: enough tiles to pay for reading all weights. */
size_t conv_winograd_images(const struct conv *c, enum conv_winograd m);

/* Floats of u and sums, and of work, below. */
size_t conv_winograd_weights_floats(const struct conv *c, enum conv_winograd m);
size_t conv_winograd_work_floats(const struct conv *c, enum conv_winograd m);

/* Packs the transformed weights: for the forward direction, or rotated. */
void conv_winograd_pack(const struct conv *c, enum conv_winograd m, bool turned,
                        struct parallel_share share, const float *w, float *u);

/* z (N, out, out, c_out) from x; turned: dx from dz. done may be NULL */
struct conv_winograd_pass {
    enum conv_winograd m;
    bool turned, add; /* add to what is there */
    const float *u, *from;
    float *to, *work;
    conv_rows *done;
    void *context;
};

void conv_winograd_run(const struct conv *c, const struct conv_winograd_pass *p, size_t first,
                       size_t end);

/* Adds or writes the transformed weight gradient to sums */
struct conv_winograd_sums {
    enum conv_winograd m;
    const float *x, *dz;
    float *sums;
    bool add;
    float *work;
};

void conv_winograd_sum_weights(const struct conv *c, const struct conv_winograd_sums *p,
                               size_t first, size_t end);
void conv_winograd_finish_weights(const struct conv *c, enum conv_winograd m,
                                  struct parallel_share share, const float *sums, float *dw,
                                  bool add);

/* For images [0, images), by a team. The transforms are shared by tiles and channels, the products
 * by register tiles of all positions; or by tiles only, if the weights fit each core's cache and
 * there are enough tiles. u, or sums, is the team's memory of conv_winograd_team_floats, `own` the
 * thread's; `work` is not used. Other threads' results are complete after the next barrier. */
size_t conv_winograd_team_floats(const struct conv *c, enum conv_winograd m, int images,
                                 int threads);
size_t conv_winograd_own_floats(const struct conv *c, enum conv_winograd m);
void conv_winograd_run_team(const struct conv *c, const struct conv_winograd_pass *p,
                            const float *w, int images, struct parallel_share share, float *own);
/* All threads' sums are complete on return; conv_winograd_finish_weights may follow. */
void conv_winograd_sum_team(const struct conv *c, const struct conv_winograd_sums *sums, int images,
                            struct parallel_share share);
