#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/batchnorm.h"

static const size_t channels[] = {1, 3, 16, 31, 64, 100, 130}, rows[] = {1, 2, 127, 300};

#define EACH_SHAPE(c, r)                                                                           \
    for (size_t ci_ = 0, c; ci_ < 7 && (c = channels[ci_], 1); ci_++)                              \
        for (size_t ri_ = 0, r; ri_ < 4 && (r = rows[ri_], 1); ri_++)

Test(batchnorm, sums_equal_the_reference)
{
    EACH_SHAPE(c, r)
    {
        float *z = noise(r * c, 1), *shift = noise(c, 2);
        double have[260] = {0}, want[260] = {0};
        batchnorm_sums(z, r, c, c, shift, have, have + c);
        batchnorm_sums_reference(z, r, c, shift, want, want + c);
        assert_close(have, want, 2 * c, 1e-6, "%zu rows of %zu", r, c);
        free(z);
        free(shift);
    }
}

Test(batchnorm, a_shift_near_the_mean_keeps_the_digits_of_the_variance)
{
    enum { ROWS = 4096, CHANNELS = 32 };
    float *z = noise(ROWS * CHANNELS, 1), shift[CHANNELS];
    double sum[CHANNELS] = {0}, square[CHANNELS] = {0};
    for (size_t i = 0; i < ROWS * CHANNELS; i++)
        z[i] = (float)(1000 + 0.01 * z[i]);
    memcpy(shift, z, sizeof shift);
    batchnorm_sums(z, ROWS, CHANNELS, CHANNELS, shift, sum, square);
    for (size_t j = 0; j < CHANNELS; j++) {
        double var = (square[j] - sum[j] * sum[j] / ROWS) / ROWS, mean = 0, want = 0;
        for (size_t i = 0; i < ROWS; i++)
            mean += z[i * CHANNELS + j] / (double)ROWS;
        for (size_t i = 0; i < ROWS; i++)
            want += pow(z[i * CHANNELS + j] - mean, 2) / ROWS;
        cr_assert(fabs(var / want - 1) < 1e-4, "variance %g instead of %g", var, want);
    }
    free(z);
}

Test(batchnorm, apply_equals_the_reference_with_every_residual)
{
    EACH_SHAPE(c, r)
    for (int kind = 0; kind < 6; kind++) {
        float *z = noise(r * c, 1), *more = noise(r * c, 2), *numbers = noise(4 * c, 3);
        float *y = noise(r * c, 4), *want = noise(r * c, 5);
        struct batchnorm_residual res = {kind % 3 ? more : NULL,
                                         kind % 3 == 2 ? numbers + 2 * c : NULL, numbers + 3 * c};
        batchnorm_apply(z, r, c, c, numbers, numbers + c, &res, kind > 2, y);
        batchnorm_apply_reference(z, r, c, numbers, numbers + c, &res, kind > 2, want);
        assert_close(y, want, r * c, 1e-6, "%zu rows of %zu, kind %d", r, c, kind);
        free(z);
        free(more);
        free(numbers);
        free(y);
        free(want);
    }
}

Test(batchnorm, relu_keeps_nan)
{
    float z[17], one[17], zero[17] = {0}, y[17];
    for (int i = 0; i < 17; i++) {
        z[i] = NAN;
        one[i] = 1;
    }
    batchnorm_apply(z, 1, 17, 17, one, zero, NULL, true, y);
    for (int i = 0; i < 17; i++)
        cr_assert(isnan(y[i]), "element %d is %g", i, (double)y[i]);
}

Test(batchnorm, mask_and_sums_equal_the_reference)
{
    EACH_SHAPE(c, r)
    for (int kind = 0; kind < 9; kind++) {
        float *g = noise(r * c, 1), *want = copy_of(g, r * c), *y = noise(r * c, 2);
        float *z = noise(r * c, 3), *z2 = noise(r * c, 4), *mean = noise(4 * c, 5);
        struct batchnorm_mask by_y = {y, NULL, NULL}, by_z = {NULL, mean + 2 * c, mean + 3 * c},
                              *mask = NULL;
        if (kind > 2)
            mask = kind > 5 && kind % 3 ? &by_z : &by_y;
        double have[390] = {0}, sums[390] = {0};
        struct batchnorm_branch a[2] = {
            {kind % 3 ? z : NULL,       mean,     have + c    },
            {kind % 3 == 2 ? z2 : NULL, mean + c, have + 2 * c}
        };
        struct batchnorm_branch b[2] = {a[0], a[1]};
        b[0].gz_sum = sums + c;
        b[1].gz_sum = sums + 2 * c;
        batchnorm_mask_sums(g, mask, r, c, c, a, have);
        batchnorm_mask_sums_reference(want, mask, r, c, b, sums);
        assert_close(g, want, r * c, 0, "%zu rows of %zu, kind %d", r, c, kind);
        assert_close(have, sums, 3 * c, 1e-5, "sums of %zu rows of %zu, kind %d", r, c, kind);
        free(g);
        free(want);
        free(y);
        free(z);
        free(z2);
        free(mean);
    }
}

/* What backward relies on, instead of keeping y. */
Test(batchnorm, the_mask_of_z_is_exactly_that_of_y)
{
    enum { ROWS = 3000, C = 40 };
    float *z = noise(ROWS * C, 1), *numbers = noise(3 * C, 2), *y = noise(ROWS * C, 3);
    float *g[2] = {noise(ROWS * C, 4), noise(ROWS * C, 4)};
    double sums[2][2 * C] = {{0}};

    for (size_t i = 0; i < ROWS * C; i++) /* many at zero but for rounding */
        if (i % 3 == 0)
            z[i] = -numbers[C + i % C] / numbers[i % C];
    batchnorm_apply(z, ROWS, C, C, numbers, numbers + C, NULL, true, y);
    for (int i = 0; i < 2; i++) {
        struct batchnorm_mask mask = {i ? y : NULL, numbers, numbers + C};
        struct batchnorm_branch branch[2] = {
            {z,            numbers + 2 * C, sums[i] + C},
            {0}
        };
        batchnorm_mask_sums(g[i], &mask, ROWS, C, C, branch, sums[i]);
    }
    cr_assert(!memcmp(g[0], g[1], ROWS * C * sizeof(float)));
    cr_assert(!memcmp(sums[0], sums[1], sizeof sums[0]));
    free(z);
    free(numbers);
    free(y);
    free(g[0]);
    free(g[1]);
}

Test(batchnorm, input_gradient_equals_the_reference)
{
    EACH_SHAPE(c, r)
    {
        float *g = noise(r * c, 1), *z = noise(r * c, 2), *n = noise(3 * c, 3),
              *want = noise(r * c, 4);
        batchnorm_input_gradient_reference(g, z, r, c, n, n + c, n + 2 * c, want);
        batchnorm_input_gradient(g, z, r, c, c, n, n + c, n + 2 * c, g);
        assert_close(g, want, r * c, 1e-6, "%zu rows of %zu", r, c);
        free(g);
        free(z);
        free(n);
        free(want);
    }
}
