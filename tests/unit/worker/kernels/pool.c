#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/pool.h"

static void check_max(int in, int channels, bool ties)
{
    struct window w = window_make(in, channels, 3, 2, 1);
    size_t n = 2, from = n * (size_t)(in * in * channels),
           to = n * (size_t)(w.out * w.out * channels);
    float *x = noise(from, 1), *y = noise(to, 2), *want = noise(to, 3);
    float *dx = noise(from, 4), *want_dx = noise(from, 5);
    uint8_t *tap = malloc(to), *want_tap = malloc(to);

    for (size_t i = 0; ties && i < from; i++)
        x[i] = x[i] > 0;
    size_t pixels = n * (size_t)(w.out * w.out), lines = n * (size_t)in; /* in two parts */

    pool_max(&w, x, 0, pixels / 3, y, tap);
    pool_max(&w, x, pixels / 3, pixels, y, tap);
    pool_max_reference(&w, x, (int)n, want, want_tap);
    assert_close(y, want, to, 0, "maxima, %d x %d x %d", in, in, channels);
    cr_assert(!memcmp(tap, want_tap, to), "the first maximum wins, %d x %d x %d", in, in, channels);
    pool_max_backward(&w, y, tap, 0, lines / 3, dx);
    pool_max_backward(&w, y, tap, lines / 3, lines, dx);
    pool_max_backward_reference(&w, y, tap, (int)n, want_dx);
    assert_close(dx, want_dx, from, 1e-6, "back, %d x %d x %d", in, in, channels);
    pool_max(&w, x, 0, pixels, dx, NULL);
    assert_close(dx, want, to, 0, "maxima without taps");
    free(x);
    free(y);
    free(want);
    free(dx);
    free(want_dx);
    free(tap);
    free(want_tap);
}

Test(pool, maximum_equals_the_reference)
{
    for (int ties = 0; ties < 2; ties++) {
        check_max(16, 64, ties);
        check_max(7, 17, ties);
        check_max(3, 1, ties);
        check_max(2, 33, ties);
    }
}

static void check_blur(int in, int channels, int stride)
{
    struct window w = window_make(in, channels, 3, stride, 1);
    size_t n = 2, from = n * (size_t)(in * in * channels),
           to = n * (size_t)(w.out * w.out * channels);
    float *x = noise(from, 1), *y = noise(to, 2), *want = noise(to, 3);
    float *dx = noise(from, 4), *want_dx = noise(from, 5);
    size_t pixels = n * (size_t)(w.out * w.out), back = n * (size_t)(in * in); /* in two parts */

    pool_blur(&w, false, x, 0, pixels / 3, false, y);
    pool_blur(&w, false, x, pixels / 3, pixels, false, y);
    pool_blur_reference(&w, x, (int)n, want);
    assert_close(y, want, to, 1e-6, "%d x %d x %d by %d", in, in, channels, stride);
    pool_blur_backward_reference(&w, y, (int)n, want_dx);
    for (int add = 0; add < 2; add++) {
        pool_blur(&w, true, y, 0, back / 3, add, dx);
        pool_blur(&w, true, y, back / 3, back, add, dx);
        for (size_t i = 0; i < from && add; i++)
            want_dx[i] *= 2;
        assert_close(dx, want_dx, from, 1e-6, "back, %d x %d x %d by %d", in, in, channels, stride);
    }
    free(x);
    free(y);
    free(want);
    free(dx);
    free(want_dx);
}

Test(pool, low_pass_filter_equals_the_reference)
{
    for (int stride = 1; stride < 3; stride++) {
        check_blur(16, 64, stride);
        check_blur(7, 17, stride);
        check_blur(3, 33, stride);
        check_blur(2, 16, stride);
        check_blur(1, 1, stride);
    }
}

Test(pool, a_nan_is_a_maximum)
{
    struct window w = window_make(3, 1, 3, 2, 1);
    float x[9] = {1, 2, 3, 4, NAN, 6, 7, 8, 9}, y[4];
    pool_max(&w, x, 0, 4, y, NULL);
    for (int i = 0; i < 4; i++)
        cr_assert(isnan(y[i]));
}

Test(pool, average_and_its_gradient_equal_the_reference)
{
    int n = 3, pixels = 49, c = 37;
    float *x = noise((size_t)(n * pixels * c), 1), *y = noise((size_t)(n * c), 2),
          *want = noise((size_t)(n * c), 3);
    struct parallel_block left = {0, 3, 0, 16}, right = {0, 3, 16, 21}, top = {0, 50, 0, 37},
                          bottom = {50, 97, 0, 37};
    pool_average(x, &left, pixels, (size_t)c, y);
    pool_average(x, &right, pixels, (size_t)c, y);
    pool_average_reference(x, n, pixels, c, want);
    assert_close(y, want, n * c, 1e-6, "average");
    pool_average_backward(y, &top, pixels, (size_t)c, x);
    pool_average_backward(y, &bottom, pixels, (size_t)c, x);
    for (int i = 0; i < n * pixels * c; i++)
        cr_assert_float_eq(x[i], y[i / (pixels * c) * c + i % c] / 49, 1e-7);
    free(x);
    free(y);
    free(want);
}
