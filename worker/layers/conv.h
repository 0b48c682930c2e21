/*
 * Convolution of square NHWC images without bias: of a batch, by a team of threads, perhaps of one.
 * conv_shape.h describes the layout of weights and pixels.
 *
 * The threads share each product, the packed weights and the sums of dw. Other threads' results are
 * complete after the next barrier. x and w must be complete when the first thread begins.
 *
 * The caller's hooks get the rows of a tile just before they are read or just after they were
 * written, while they are in cache, so that batch norm needs no passes of its own. They get parts
 * of rows, each element once, from the thread that reads or wrote them.
 */
#pragma once

#include "worker/layers/conv_shape.h"

/* Floats of struct conv_memory, for at most so many images. */
size_t conv_team_floats(const struct conv *c, int images, int threads);
size_t conv_own_floats(const struct conv *c, int threads);

/* z (N, out, out, c_out) of images [0, images). done may be NULL. */
void conv_forward(const struct conv *c, const float *w, const float *x, float *z, int images,
                  struct parallel_share share, const struct conv_memory *memory, conv_rows *done,
                  void *context);

/* Gradients from images [0, images), images > 0. */
void conv_backward(const struct conv *c, const struct conv_backward *b, int images,
                   struct parallel_share share, const struct conv_memory *memory);

/* Whether backward reads x only row by row, right after `ready` was called for all channels of the
 * rows. Otherwise x must be complete at the start, and `ready` gets blocks of channels. */
bool conv_backward_by_rows(const struct conv *c, int images, struct parallel_share share,
                           const struct conv_memory *memory, bool wants_dx);
