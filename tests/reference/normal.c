#include <math.h>

#include "tests/reference/reference.h"

void normal_fill_reference(float *x, size_t count, double sd, struct rng stream)
{
    for (size_t i = 0; i < count; i += 2) {
        double radius = sqrt(-2 * log(1 - rng_unit(&stream)));
        double angle = 2 * M_PI * rng_unit(&stream);

        x[i] = (float)(sd * (radius * cos(angle)));
        if (i + 1 < count)
            x[i + 1] = (float)(sd * (radius * sin(angle)));
    }
}
