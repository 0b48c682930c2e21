/* dx of a strided convolution. Pixels of dx whose positions differ by a multiple of the stride see
 * the same taps, and each tap belongs to one such class: a product of its own, dz gathered by its
 * taps times their transposed weights. Shared by lines of `stride` rows of pixels and by panels. */
#pragma once

#include "worker/layers/conv_shape.h"

/* Packs a thread's panels of the weights by class: as many floats as the weights. */
void conv_phases_pack(const struct conv *c, const float *w, struct parallel_share share, float *to);

/* Computes dx, in pieces. packed: all panels; NULL: use OpenBLAS. A thread's own memory has
 * conv_phases_floats. */
void conv_phases_data(const struct conv_part *part, const struct conv_backward *b,
                      const float *packed);
size_t conv_phases_floats(const struct conv *c);
