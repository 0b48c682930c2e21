#include "tests/reference/reference.h"
#include "worker/kernels/batchnorm.h"

#include "tests/unit/worker/compare.h"
#include "worker/kernels/pool.h"

static const size_t channels[] = {32, 64, 160}, rows[] = {1, 2, 127, 300};

#define EACH_SHAPE(c, r)                                                                           \
    for (size_t ci_ = 0, c; ci_ < 3 && (c = channels[ci_], 1); ci_++)                              \
        for (size_t ri_ = 0, r; ri_ < 4 && (r = rows[ri_], 1); ri_++)

/* Numbers that bf16 has, as both. */
struct tensor {
    bf16 *half;
    float *whole;
};

static struct tensor tensor(size_t n, int64_t seed)
{
    struct tensor t = {malloc(n * sizeof(bf16)), noise(n, seed)};
    bf16_from_floats(t.whole, n, t.half);
    bf16_to_floats(t.half, n, t.whole);
    return t;
}

static void bf16_batchnorm_drop(struct tensor t)
{
    free(t.half);
    free(t.whole);
}

/* Rounded once to 8 bits. */
static void bf16_batchnorm_assert_rounded(const bf16 *have, const float *want, size_t n,
                                          const char *what)
{
    for (size_t i = 0; i < n; i++) {
        double x = bf16_to_float(have[i]), y = want[i];
        cr_assert(fabs(x - y) <= 0x1.01p-8 * fabs(y) + 1e-6, "%s: %zu is %g, not %g", what, i, x,
                  y);
    }
}

Test(batchnorm_bf16, sums_equal_the_reference)
{
    EACH_SHAPE(c, r)
    {
        struct tensor z = tensor(r * c, 1);
        float *shift = noise(c, 2);
        double have[320] = {0}, want[320] = {0};
        batchnorm_bf16_sums(z.half, r, c, c, shift, have, have + c);
        batchnorm_sums_reference(z.whole, r, c, shift, want, want + c);
        assert_close(have, want, 2 * c, 4e-6, "%zu rows of %zu", r, c);
        bf16_batchnorm_drop(z);
        free(shift);
    }
}

Test(batchnorm_bf16, apply_equals_the_reference_with_every_residual)
{
    EACH_SHAPE(c, r)
    for (int kind = 0; kind < 6; kind++) {
        struct tensor z = tensor(r * c, 1), more = tensor(r * c, 2), y = tensor(r * c, 4);
        float *numbers = noise(4 * c, 3);
        const float *scale = kind % 3 == 2 ? numbers + 2 * c : NULL;
        struct batchnorm_residual res = {kind % 3 ? more.half : NULL, scale, numbers + 3 * c};
        struct batchnorm_residual plain = {kind % 3 ? more.whole : NULL, scale, numbers + 3 * c};
        batchnorm_bf16_apply(z.half, r, c, c, numbers, numbers + c, &res, kind > 2, y.half);
        batchnorm_apply_reference(z.whole, r, c, numbers, numbers + c, &plain, kind > 2, y.whole);
        bf16_batchnorm_assert_rounded(y.half, y.whole, r * c, "y");
        bf16_batchnorm_drop(z);
        bf16_batchnorm_drop(more);
        bf16_batchnorm_drop(y);
        free(numbers);
    }
}

Test(batchnorm_bf16, relu_keeps_nan)
{
    bf16 z[32], y[32];
    float one[32], zero[32] = {0};
    for (int i = 0; i < 32; i++) {
        z[i] = bf16_from_float(NAN);
        one[i] = 1;
    }
    batchnorm_bf16_apply(z, 1, 32, 32, one, zero, NULL, true, y);
    for (int i = 0; i < 32; i++)
        cr_assert(isnan(bf16_to_float(y[i])));
}

Test(batchnorm_bf16, the_mask_is_the_sign_of_the_result_of_apply)
{
    enum { ROWS = 64, CHANNELS = 64, N = ROWS * CHANNELS };
    struct tensor z = tensor(N, 1), g = tensor(N, 2), by_y = tensor(N, 2), y = tensor(N, 3);
    float *numbers = noise(3 * CHANNELS, 4);
    double sums[4 * CHANNELS] = {0};

    batchnorm_bf16_apply(z.half, ROWS, CHANNELS, CHANNELS, numbers, numbers + CHANNELS, NULL, true,
                         y.half);
    for (int i = 0; i < 2; i++) {
        struct batchnorm_mask mask = {i ? y.half : NULL, numbers, numbers + CHANNELS};
        struct batchnorm_branch branch[2] = {
            {z.half, numbers + 2 * CHANNELS, sums + (1 + 2 * i) * CHANNELS}
        };
        batchnorm_bf16_mask_sums(i ? by_y.half : g.half, &mask, ROWS, CHANNELS, CHANNELS, branch,
                                 sums + 2 * i * CHANNELS);
    }
    cr_assert_arr_eq(g.half, by_y.half, N * sizeof(bf16));
    cr_assert_arr_eq(sums, sums + 2 * CHANNELS, 2 * CHANNELS * sizeof(double));
    bf16_batchnorm_drop(z);
    bf16_batchnorm_drop(g);
    bf16_batchnorm_drop(by_y);
    bf16_batchnorm_drop(y);
    free(numbers);
}

Test(batchnorm_bf16, mask_and_sums_equal_the_reference)
{
    EACH_SHAPE(c, r)
    for (int branches = 1; branches < 3; branches++) {
        struct tensor g = tensor(r * c, 1), y = tensor(r * c, 2), z = tensor(r * c, 3),
                      z2 = tensor(r * c, 4);
        float *mean = noise(2 * c, 5);
        double have[480] = {0}, want[480] = {0};
        struct batchnorm_mask mask = {y.half, NULL, NULL};
        struct batchnorm_mask plain_mask = {y.whole, NULL, NULL};
        struct batchnorm_branch b[2] = {
            {z.half,                        mean,     have + c    },
            {branches > 1 ? z2.half : NULL, mean + c, have + 2 * c}
        };
        struct batchnorm_branch plain[2] = {
            {z.whole,                        mean,     want + c    },
            {branches > 1 ? z2.whole : NULL, mean + c, want + 2 * c}
        };
        batchnorm_bf16_mask_sums(g.half, &mask, r, c, c, b, have);
        batchnorm_mask_sums_reference(g.whole, &plain_mask, r, c, plain, want);
        assert_close(have, want, 3 * c, 4e-6, "sums, %zu rows of %zu", r, c);
        for (size_t i = 0; i < r * c; i++)
            cr_assert_eq(bf16_to_float(g.half[i]), g.whole[i]);
        bf16_batchnorm_drop(g);
        bf16_batchnorm_drop(y);
        bf16_batchnorm_drop(z);
        bf16_batchnorm_drop(z2);
        free(mean);
    }
}

Test(batchnorm_bf16, input_gradient_equals_the_reference)
{
    EACH_SHAPE(c, r)
    {
        struct tensor g = tensor(r * c, 1), z = tensor(r * c, 2), dz = tensor(r * c, 3);
        float *n = noise(3 * c, 4);
        batchnorm_bf16_input_gradient(g.half, z.half, r, c, c, n, n + c, n + 2 * c, dz.half);
        batchnorm_input_gradient_reference(g.whole, z.whole, r, c, n, n + c, n + 2 * c, dz.whole);
        bf16_batchnorm_assert_rounded(dz.half, dz.whole, r * c, "dz");
        bf16_batchnorm_drop(g);
        bf16_batchnorm_drop(z);
        bf16_batchnorm_drop(dz);
        free(n);
    }
}

Test(batchnorm_bf16, pooling_equals_the_reference)
{
    static const int sizes[] = {16, 7, 3, 2};
    enum { N = 2, C = 64 };

    for (int i = 0; i < 4; i++) {
        struct window w = window_make(sizes[i], C, 3, 2, 1);
        size_t from = (size_t)(N * w.in * w.in * C), to = (size_t)(N * w.out * w.out * C);
        struct tensor x = tensor(from, 1), y = tensor(to, 2), dx = tensor(from, 3),
                      again = tensor(to, 4);
        uint8_t *tap = malloc(to), *want_tap = malloc(to);
        size_t pixels = to / C, lines = from / C / (size_t)w.in; /* in two parts each */
        pool_bf16_max(&w, x.half, 0, pixels / 3, y.half, tap);
        pool_bf16_max(&w, x.half, pixels / 3, pixels, y.half, tap);
        pool_max_reference(&w, x.whole, N, y.whole, want_tap);
        for (size_t k = 0; k < to; k++)
            cr_assert(bf16_to_float(y.half[k]) == y.whole[k] && tap[k] == want_tap[k]);
        pool_bf16_max(&w, x.half, 0, pixels, again.half, NULL);
        cr_assert_arr_eq(again.half, y.half, to * sizeof(bf16));
        pool_bf16_max_backward(&w, y.half, tap, 0, lines / 3, dx.half);
        pool_bf16_max_backward(&w, y.half, tap, lines / 3, lines, dx.half);
        pool_max_backward_reference(&w, y.whole, tap, N, dx.whole);
        bf16_batchnorm_assert_rounded(dx.half, dx.whole, from, "dx");
        bf16_batchnorm_drop(x);
        bf16_batchnorm_drop(y);
        bf16_batchnorm_drop(dx);
        bf16_batchnorm_drop(again);
        free(tap);
        free(want_tap);
    }
}

Test(batchnorm_bf16, low_pass_filter_equals_the_reference)
{
    static const int sizes[] = {16, 7, 2, 1};
    enum { N = 2, C = 64 };

    for (int i = 0; i < 8; i++) {
        struct window w = window_make(sizes[i / 2], C, 3, 1 + i % 2, 1);
        size_t from = (size_t)(N * w.in * w.in * C), to = (size_t)(N * w.out * w.out * C);
        struct tensor x = tensor(from, 1), y = tensor(to, 2), dx = tensor(from, 3);
        size_t pixels = to / C, back = from / C;
        pool_bf16_blur(&w, false, x.half, 0, pixels / 3, false, y.half);
        pool_bf16_blur(&w, false, x.half, pixels / 3, pixels, false, y.half);
        pool_blur_reference(&w, x.whole, N, y.whole);
        bf16_batchnorm_assert_rounded(y.half, y.whole, to, "y");
        bf16_to_floats(y.half, to, y.whole);
        pool_bf16_blur(&w, true, y.half, 0, back / 3, false, dx.half);
        pool_bf16_blur(&w, true, y.half, back / 3, back, false, dx.half);
        pool_blur_backward_reference(&w, y.whole, N, dx.whole);
        bf16_batchnorm_assert_rounded(dx.half, dx.whole, from, "dx");
        bf16_batchnorm_drop(x);
        bf16_batchnorm_drop(y);
        bf16_batchnorm_drop(dx);
    }
}

Test(batchnorm_bf16, averages_equal_the_reference)
{
    enum { N = 3, PIXELS = 49, C = 64 };
    struct tensor x = tensor(N * PIXELS * C, 1);
    float *y = noise(N * C, 2), *want = noise(N * C, 3);

    pool_bf16_average(x.half, &(struct parallel_block){0, 1, 0, C}, PIXELS, C, y);
    pool_bf16_average(x.half, &(struct parallel_block){1, N - 1, 0, C}, PIXELS, C, y);
    pool_average_reference(x.whole, N, PIXELS, C, want);
    assert_close(y, want, N * C, 1e-6, "average");
    pool_bf16_average_backward(y, &(struct parallel_block){0, 60, 0, C}, PIXELS, C, x.half);
    pool_bf16_average_backward(y, &(struct parallel_block){60, N * PIXELS - 60, 0, C}, PIXELS, C,
                               x.half);
    pool_average_backward(y, &(struct parallel_block){0, N * PIXELS, 0, C}, PIXELS, C, x.whole);
    bf16_batchnorm_assert_rounded(x.half, x.whole, N * PIXELS * C, "dx");
    bf16_batchnorm_drop(x);
    free(y);
    free(want);
}
