/*
 * Convolution of square NHWC images without bias: forward and backward over a range of a batch in
 * one thread, or of a batch by a team of threads. conv_shape.h says how weights and pixels lie.
 *
 * Work goes tile by tile; a caller's hooks see the rows of a tile just before they are read or just
 * after they were written, while they are in cache, so that batch norm needs no passes of its own.
 */
#pragma once

#include "worker/layers/conv_shape.h"

size_t conv_scratch_floats(const struct conv *c); /* of a thread that works by itself */

/* z (N, out, out, c_out) of the images [first, end). done may be NULL. */
void conv_forward(const struct conv *c, const float *w, const float *x, float *z, int first,
                  int end, float *scratch, conv_rows *done, void *context);

/* Gradients from the images [first, end) (first < end). */
void conv_backward(const struct conv *c, const struct conv_backward *b, int first, int end);

/*
 * The same of images [0, images) by a team of threads that share each product (parallel.h has the
 * rule), weights that are made once, and the sums of dw: each thread calls it, and has done its
 * part when it returns; what others did is there behind the next barrier. Hooks are called for
 * parts of rows, by the thread that reads or wrote them, each element once. x and w are there
 * when the first thread begins; of b, scratch is not used. A team of one is not wanted here.
 */
size_t conv_team_floats(const struct conv *c, int images, int threads);
size_t conv_own_floats(const struct conv *c);

void conv_forward_team(const struct conv *c, const float *w, const float *x, float *z, int images,
                       struct parallel_share share, const struct conv_memory *memory,
                       conv_rows *done, void *context);
void conv_backward_team(const struct conv *c, const struct conv_backward *b, int images,
                        struct parallel_share share, const struct conv_memory *memory);

/* Does backward read x only row by row, right after `ready` was called for all channels of the
 * rows? Otherwise x must be there from the beginning, and `ready` gets blocks of channels. */
bool conv_backward_by_rows(const struct conv *c, int images, int threads, bool wants_dx);
