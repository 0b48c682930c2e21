/* CONV_PIXEL: a product's rows are a batch's images at one pixel and tap. scratch: conv_weights */
#pragma once

#include "worker/layers/conv_shape.h"

void conv_pixel_forward(const struct conv *c, const float *w, const float *x, float *z,
                        size_t first, size_t images, float *scratch);
void conv_pixel_weights(const struct conv *c, const float *x, const float *dz, size_t first,
                        size_t images, float *dw, bool add);
void conv_pixel_data(const struct conv *c, const float *w, const float *dz, float *dx, bool add,
                     size_t first, size_t images, float *scratch);

/* For a team: packs panels of output (or input) channels together, then works on own images */
void conv_pixel_pack(const struct conv *c, struct parallel_range panels, const float *w, float *to);
void conv_pixel_pack_data(const struct conv *c, struct parallel_range panels, const float *w,
                          float *to);
void conv_pixel_forward_packed(const struct conv *c, const float *packed, const float *x, float *z,
                               size_t first, size_t images);
void conv_pixel_data_packed(const struct conv *c, const float *packed, const float *dz, float *dx,
                            bool add, size_t first, size_t images);

/* Number of pixels that a tap meets. Times `images`: the rows of its products for dw. */
size_t conv_pixel_hits(const struct conv *c, int tap);

/* From part `of` of these rows, a tap's (c_in, c_out) weights, to dw with rows ld apart. Returns
 * add, or true if there were any rows. */
bool conv_pixel_weights_part(const struct conv *c, const float *x, const float *dz, int tap,
                             struct parallel_range rows, size_t images, struct parallel_block of,
                             float *dw, size_t ld, bool add);
