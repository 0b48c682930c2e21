/*
 * Winograd's minimal filtering (kernels/winograd.h) for 3x3 convolutions of stride 1, padded by 1:
 * groups of tiles are transformed, multiplied position by position with the transformed weights,
 * and transformed back, so that a group stays in the cache. One thread a call.
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

/* The transformed weights, packed for the products: of the forward direction, or turned. */
void conv_winograd_pack(const struct conv *c, enum conv_winograd m, bool turned, const float *w,
                        float *u);

/* z (N, out, out, c_out) of the images [first, end) from x; turned: dx from dz. done may be NULL.
 */
struct conv_winograd_pass {
    enum conv_winograd m;
    bool turned, add; /* add: to what is there */
    const float *u, *from;
    float *to, *work;
    conv_rows *done;
    void *context;
};
void conv_winograd_run(const struct conv *c, const struct conv_winograd_pass *p, size_t first,
                       size_t end);

/* The transformed weight gradient of the images [first, end): to sums, or added. */
void conv_winograd_sum_weights(const struct conv *c, enum conv_winograd m, const float *x,
                               const float *dz, size_t first, size_t end, float *sums, bool add,
                               float *work);
void conv_winograd_finish_weights(const struct conv *c, enum conv_winograd m, const float *sums,
                                  float *dw, bool add);

#endif
