#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/window.h"

static const struct {
    int in, channels, kernel, stride, pad;
} shapes[] = {
    {8, 3,  7, 2, 3},
    {5, 17, 3, 1, 1},
    {6, 4,  3, 2, 1},
    {2, 5,  3, 1, 1},
    {1, 3,  3, 1, 1},
    {2, 8,  3, 2, 1},
    {7, 6,  1, 2, 0},
    {4, 2,  1, 1, 0}
};

Test(im2col, equals_the_reference_for_any_range_of_rows)
{
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        struct window w = window_make(shapes[s].in, shapes[s].channels, shapes[s].kernel,
                                      shapes[s].stride, shapes[s].pad);
        size_t n = 3, all = n * (size_t)(w.out * w.out),
               floats = n * (size_t)(w.in * w.in * w.channels);
        size_t columns = (size_t)(window_taps(&w) * window_taps(&w) * w.channels);
        float *x = noise(floats, 1), *dx = noise(floats, 2), *want_dx = copy_of(dx, floats);
        float *col = noise(all * columns, 3), *want = noise(all * columns, 4);
        for (size_t row0 = 0; row0 < all; row0 += 1 + all / 3) {
            im2col(&w, x, row0, all - row0, col);
            im2col_reference(&w, x, row0, all - row0, want);
            assert_close(col, want, (all - row0) * columns, 0, "shape %zu from row %zu", s, row0);
            col2im(&w, col, row0, all - row0, dx);
            col2im_reference(&w, col, row0, all - row0, want_dx);
            assert_close(dx, want_dx, floats, 1e-6, "back, shape %zu from row %zu", s, row0);
        }
        free(x);
        free(dx);
        free(want_dx);
        free(col);
        free(want);
    }
}

Test(im2col, leaves_out_taps_that_only_see_padding)
{
    struct window alone = window_make(1, 4, 3, 1, 1), halved = window_make(2, 4, 3, 2, 1);
    cr_assert_eq(window_taps(&alone), 1);
    cr_assert_eq(alone.tap_first, 1);
    cr_assert_eq(window_taps(&halved), 2);
    cr_assert_eq(halved.tap_first, 1);
    struct window full = window_make(224, 3, 7, 2, 3);
    cr_assert_eq(window_taps(&full), 7);
    cr_assert_eq(full.out, 112);
}
