#pragma once

#include "common/rng.h"
#include "worker/model/model_config.h"

/* Kaiming fan_out normal for convolutions, torch's uniform for the classifier, gamma 1 or uniform
 * (0 for the last of a block with zero_init_residual), beta 0. cnn: Glorot's uniform for weights,
 * biases 0. The classifier's bias is -log(classes) with loss bce.
 * The bits depend on the seed and the libm only. */
void model_init(struct model *m, int64_t seed);

/* x (count) = sd times standard normals: 2i and 2i+1 are radius cos(angle) and radius sin(angle),
 * radius = sqrt(-2 log(1 - u)), angle = 2 pi v, of the stream's numbers u and v (Box and Muller,
 * 1958). Computed in double. The stream must be unused. */
void normal_fill(float *x, size_t count, double sd, const struct rng *stream);
