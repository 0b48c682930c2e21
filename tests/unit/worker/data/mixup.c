#include <criterion/criterion.h>
#include <math.h>

#include "worker/data/augment.h"

enum { DRAWS = 20000 };

/* The mean of Beta(alpha, alpha) is 1/2, its variance 1 / (4 (2 alpha + 1)). */
static void check_mixup(double alpha, double below_tenth)
{
    double sum = 0, squares = 0, below = 0;

    for (int64_t step = 0; step < DRAWS; step++) {
        double x = mixup_lambda(alpha, 1, step / 100, step);
        cr_assert(x >= 0 && x <= 1);
        sum += x;
        squares += (x - 0.5) * (x - 0.5);
        below += x < 0.1;
    }
    double variance = 1 / (4 * (2 * alpha + 1));
    cr_expect_float_eq(sum / DRAWS, 0.5, 5 * sqrt(variance / DRAWS), "alpha %g: mean %g", alpha,
                       sum / DRAWS);
    cr_expect_float_eq(squares / DRAWS, variance, 0.03 * variance, "alpha %g: variance %g", alpha,
                       squares / DRAWS);
    cr_expect_float_eq(below / DRAWS, below_tenth, 0.015, "alpha %g: %g below 0.1", alpha,
                       below / DRAWS);
}

/* The last number is the distribution function at 0.1. */
Test(mixup, lambda_is_from_beta)
{
    check_mixup(1, 0.1);
    check_mixup(0.2, 0.3367);
    check_mixup(2, 0.028);
    check_mixup(10, 0);
}

Test(mixup, lambda_is_numbered_not_drawn)
{
    double x = mixup_lambda(0.2, 1, 2, 3);
    cr_assert_eq(mixup_lambda(0.2, 1, 2, 3), x);
    cr_assert_neq(mixup_lambda(0.2, 2, 2, 3), x);
    cr_assert_neq(mixup_lambda(0.2, 1, 3, 3), x);
    cr_assert_neq(mixup_lambda(0.2, 1, 2, 4), x);
}

Test(mixup, a_tiny_alpha_gives_zero_or_one)
{
    for (int64_t step = 0; step < 100; step++) {
        double x = mixup_lambda(1e-4, 1, 0, step);
        cr_assert(x < 0.01 || x > 0.99, "%g", x);
    }
}

Test(mixup, images_mix_with_the_batch_reversed)
{
    float x[6] = {1, 2, 10, 20, 100, 200}, y[6];
    mixup_images(y, x, 3, 2, 0.75);
    float want[6] = {25.75f, 51.5f, 10, 20, 75.25f, 150.5f};
    cr_assert_arr_eq(y, want, sizeof want);
    mixup_images(x, x, 3, 2, 0.75);
    cr_assert_arr_eq(x, want, sizeof want);
    mixup_images(y, want, 2, 2, 1);
    cr_assert_arr_eq(y, want, 4 * sizeof(float));
}
