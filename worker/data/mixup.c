#include "worker/data/mixup.h"

#include <math.h>

#include "common/rng.h"

static double mixup_normal(struct rng *r)
{
    double radius = sqrt(-2 * log(1 - rng_unit(r)));
    return radius * cos(2 * M_PI * rng_unit(r));
}

/* The logarithm of a number from Gamma(shape, 1): Marsaglia and Tsang, "A simple method for
 * generating gamma variables", 2000, with their way from shape + 1 to shape. As a logarithm,
 * because of a small shape's numbers most are smaller than a double can be. */
static double mixup_log_gamma_number(struct rng *r, double shape)
{
    double boost = shape < 1 ? log(1 - rng_unit(r)) / shape : 0;
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        double x = mixup_normal(r), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1 - rng_unit(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + boost;
    }
}

double mixup_lambda(double alpha, int64_t seed, int64_t epoch, int64_t step)
{
    struct rng r = rng_stream(seed, epoch, step, RNG_MIXUP);
    double a = mixup_log_gamma_number(&r, alpha), b = mixup_log_gamma_number(&r, alpha);

    return 1 / (1 + exp(b - a));
}

void mixup_images(float *to, const float *from, int n, size_t floats, double lambda)
{
    float own = (float)lambda, other = (float)(1 - lambda);

    for (int i = 0; i < (n + 1) / 2; i++) {
        size_t first = (size_t)i * floats, second = (size_t)(n - 1 - i) * floats;
        for (size_t k = 0; k < floats; k++) {
            float a = from[first + k], b = from[second + k];
            to[first + k] = own * a + other * b;
            to[second + k] = own * b + other * a;
        }
    }
}
