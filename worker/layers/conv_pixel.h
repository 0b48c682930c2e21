/* CONV_PIXEL: a product's rows are a batch's images at one pixel and tap. */
#pragma once

#include "worker/layers/conv_shape.h"

/* Pack panels of output, or input, channels of the weights: conv_weights floats for all of them. */
void conv_pixel_pack(const struct conv *c, struct parallel_range panels, const float *w, float *to);
void conv_pixel_pack_data(const struct conv *c, struct parallel_range panels, const float *w,
                          float *to);

/* z, or dx, of images [first, first + images). w: all panels if packed, else the weights. */
void conv_pixel_forward(const struct conv *c, const float *w, bool packed, const float *x, float *z,
                        size_t first, size_t images);
void conv_pixel_data(const struct conv *c, const float *w, bool packed, const float *dz, float *dx,
                     bool add, size_t first, size_t images);

/* Number of pixels that a tap meets. Times `images`: the rows of its products for dw. */
size_t conv_pixel_hits(const struct conv *c, int tap);

/* From part `of` of these rows, a tap's (c_in, c_out) weights, to dw with rows ld apart. Returns
 * add, or true if there were any rows. */
bool conv_pixel_weights_part(const struct conv *c, const float *x, const float *dz, int tap,
                             struct parallel_range rows, size_t images, struct parallel_block of,
                             float *dw, size_t ld, bool add);
