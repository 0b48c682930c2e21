/*
 * CONV_GROUPED: 3x3 convolutions, padded by 1, whose output channels only see their group's
 * channels (Xie et al., arXiv:1611.05431). A vector holds output channels of several small groups,
 * or a part of a large one, so that no lane multiplies by the zeros between groups; sums of a strip
 * of pixels stay in registers.
 *
 * Weights are (ky, kx, c_in / groups, c_out).
 */
#pragma once

#include "worker/layers/conv_shape.h"

/* As many output as input channels, in groups of 4, 8, 16, ... that fill vectors. */
bool conv_grouped_takes(const struct conv *c);

void conv_grouped_forward(const struct conv_part *part, const float *w, const float *x, float *z,
                          conv_rows *done, void *context);
void conv_grouped_backward(const struct conv_part *part, const struct conv_backward *b);
size_t conv_grouped_team_floats(const struct conv *c);
size_t conv_grouped_own_floats(const struct conv *c);
