/* CONV_PIXEL of conv.h: products whose rows are the images of a batch, one for each pixel and tap.
 * scratch: conv_weights floats. */
#ifndef TRAIND_WORKER_LAYERS_CONV_PIXEL_H
#define TRAIND_WORKER_LAYERS_CONV_PIXEL_H

#include "worker/layers/conv.h"

void conv_pixel_forward(const struct conv *c, const float *w, const float *x, float *z,
                        size_t first, size_t images, float *scratch);
void conv_pixel_weights(const struct conv *c, const float *x, const float *dz, size_t first,
                        size_t images, float *dw, bool add);
void conv_pixel_data(const struct conv *c, const float *w, const float *dz, float *dx, bool add,
                     size_t first, size_t images, float *scratch);

#endif
