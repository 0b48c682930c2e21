/*
 * Winograd's minimal filtering (kernels/winograd.h) for 3x3 convolutions of stride 1, padded by 1:
 * groups of tiles, small enough for the cache, are transformed, multiplied position by position
 * with the transformed weights, and transformed back. F(2x2) of images of 2x2 is WINOGRAD_IMAGE.
 *
 * The input gradient is the same convolution of dz with the kernel rotated by 180 degrees and its
 * channels swapped. The weight gradient is summed over all tiles before it is transformed back.
 * A single thread transforms weights that exceed its cache in blocks, for each group of tiles anew.
 *
 * x, z and their gradients are floats, or bf16 (`half`): all in between is fp32, from weights that
 * are not rounded.
 */
#pragma once

#include "worker/layers/conv_shape.h"

/* Channels of a group must be multiples of tile_columns(). */
bool conv_winograd_takes(const struct conv *c);

/* z (N, out, out, c_out) from x; turned: dx from dz. */
struct conv_winograd_pass {
    enum conv_winograd m;
    bool half, turned, add; /* add to what is there */
    const float *w;
    const void *from;
    void *to;
    conv_rows *done; /* may be NULL */
    void *context;
};

/* The weight gradient. Single threads call `ready` for rows of dz before they are
 * read; otherwise dz must be complete. */
struct conv_winograd_sums {
    enum conv_winograd m;
    bool half;
    const void *x, *dz;
    float *dw;
    bool add_dw;
    conv_rows *ready; /* may be NULL */
    void *context;
};

/* The transforms are shared by tiles and channels, the products by register tiles of all positions;
 * or by tiles only, if the weights fit each core's cache and there are enough tiles. Other threads'
 * results are complete after the next barrier. */
void conv_winograd_run(const struct conv_part *part, const struct conv_winograd_pass *p);
void conv_winograd_sum(const struct conv_part *part, const struct conv_winograd_sums *sums);

/* Floats of the team's memory, and of a thread's own, for the directions in c->winograd */
size_t conv_winograd_team_floats(const struct conv *c, int images, int threads);
size_t conv_winograd_own_floats(const struct conv *c, int threads);
