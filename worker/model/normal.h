/* Normal random numbers, many at a time. */
#pragma once

#include <stddef.h>

#include "common/rng.h"

/* x (count) = sd times standard normals: 2i and 2i+1 are radius cos(angle) and radius sin(angle),
 * radius = sqrt(-2 log(1 - u)), angle = 2 pi v, of the stream's numbers u and v (Box and Muller, "A
 * note on the generation of random normal deviates", 1958). Computed in double, then rounded. The
 * stream is one that nothing has been drawn from. */
void normal_fill(float *x, size_t count, double sd, const struct rng *stream);
