/*
 * dx of a convolution that steps: pixels of dx whose places differ by a multiple of the stride see
 * the same taps, and each tap belongs to one such class. So a class is a product of its own, dz
 * gathered by its taps with their weights turned, and no thread adds to what another made. Shared
 * out by rows of `stride` rows of pixels, a line each, and panels of channels.
 */
#pragma once

#include "worker/layers/conv_shape.h"

/* A thread's panels of the weights as the classes want them: as many floats as the weights. */
void conv_phases_pack(const struct conv *c, const float *w, struct parallel_share share, float *to);

/* dx, in pieces. packed: all panels; NULL: OpenBLAS multiplies. own:
 * conv_phases_floats. */
void conv_phases_data(const struct conv *c, const struct conv_backward *b, int images,
                      struct parallel_share share, const float *packed, float *own);
size_t conv_phases_floats(const struct conv *c);
