#include "daemon/sweep/halton.h"

#include <math.h>

#include "common/rng.h"

static const int primes[HALTON_DIMENSIONS] = {2,  3,  5,  7,  11, 13, 17, 19,
                                              23, 29, 31, 37, 41, 43, 47, 53};

/* The digits of n behind the point, the last one first. */
static double halton_inverse(int64_t n, int base)
{
    double value = 0, digit = 1.0 / base;

    for (; n > 0; n /= base, digit /= base)
        value += digit * (double)(n % base);
    return value;
}

double halton(int64_t seed, int64_t index, size_t dimension)
{
    struct rng r = rng_stream(seed, 1, (int64_t)dimension, RNG_SWEEP);
    double u = halton_inverse(index + 1, primes[dimension]) + rng_unit(&r);

    return u - floor(u);
}
