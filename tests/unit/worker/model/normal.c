#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/model/init.h"

enum { MANY = 3000001 / ONE_OF };

static float *new_floats(size_t count)
{
    float *x = calloc(count, sizeof *x);
    cr_assert(x);
    return x;
}

static void expect_same_bits(size_t count, double sd, int64_t seed)
{
    float *x = new_floats(count + 1), *y = new_floats(count + 1);
    struct rng stream = rng_stream(seed, 0, 7, RNG_MODEL);

    x[count] = y[count] = 42;
    normal_fill(x, count, sd, &stream);
    normal_fill_reference(y, count, sd, stream);
    for (size_t i = 0; i <= count; i++)
        cr_assert(!memcmp(&x[i], &y[i], sizeof *x), "number %zu of %zu: %.9g, not %.9g", i, count,
                  x[i], y[i]);
    free(x);
    free(y);
}

Test(normal, has_the_bits_of_numbers_drawn_one_by_one)
{
    expect_same_bits(MANY, 0.0137, 1);
    expect_same_bits(MANY, 1, -5);
}

Test(normal, fills_any_count_and_nothing_more)
{
    static const size_t counts[] = {0, 1, 2, 3, 511, 512, 513, 1024, 1025};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        expect_same_bits(counts[i], 0.5, (int64_t)i);
}

Test(normal, has_the_moments_of_a_normal_distribution)
{
    float *x = new_floats(MANY);
    struct rng stream = rng_stream(3, 0, 0, RNG_MODEL);
    double sum[5] = {0};

    normal_fill(x, MANY, 2, &stream);
    for (size_t i = 0; i < MANY; i++)
        for (int k = 1; k <= 4; k++)
            sum[k] += pow(x[i] / 2, k) / MANY;
    /* Within five standard errors: of the k-th power sqrt(moment 2k - moment k squared). */
    double error = 5 / sqrt(MANY);
    cr_expect(fabs(sum[1]) < error, "%g", sum[1]);
    cr_expect(fabs(sum[2] - 1) < sqrt(2) * error, "%g", sum[2]);
    cr_expect(fabs(sum[3]) < sqrt(15) * error, "%g", sum[3]);
    cr_expect(fabs(sum[4] - 3) < sqrt(96) * error, "%g", sum[4]);
    free(x);
}
