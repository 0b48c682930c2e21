#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/bf16.h"
#include "worker/kernels/winograd.h"

enum { CHANNELS = 3 * 16, LD = CHANNELS + 5 }; /* multiples of any vector */

static const struct winograd_tile tiles[] = {
    {2,              2, 2},
    {4,              4, 4},
    {4,              4, 3},
    {4,              3, 4},
    {4,              3, 3},
    {WINOGRAD_IMAGE, 2, 2},
};

enum { TILES = sizeof tiles / sizeof tiles[0] };

static const int sizes[] = {2, 4, WINOGRAD_IMAGE};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* `side`^2 pixels of CHANNELS numbers, in reverse order; NULL where a tile has none. */
static void *const *pixels_of(struct winograd_tile t, int side, void *numbers, size_t bytes)
{
    static void *pixels[WINOGRAD_POSITIONS_MAX];
    int outputs = winograd_outputs(t.m);
    for (int i = 0; i < side * side; i++)
        pixels[i] = i / side < side - (outputs - t.rows) && i % side < side - (outputs - t.columns)
                        ? (char *)numbers + (size_t)(side * side - 1 - i) * CHANNELS * bytes
                        : NULL;
    return pixels;
}

static float *const *floats_of(struct winograd_tile t, int side, float *floats)
{
    return (float *const *)pixels_of(t, side, floats, sizeof *floats);
}

/* Rounds x (n) to numbers that bf16 has; returns these as such. */
static bf16 *rounded(float *x, size_t n)
{
    bf16 *y = malloc(n * sizeof *y);
    bf16_from_floats(x, n, y);
    bf16_to_floats(y, n, x);
    return y;
}

Test(winograd, inputs_equal_the_matrices)
{
    for (int i = 0; i < TILES; i++) {
        struct winograd_tile t = tiles[i];
        int n = winograd_positions(t.m), side = winograd_inputs(t.m);
        float *x = noise((size_t)n * CHANNELS, 1), *v = noise((size_t)n * LD, 2);
        float *want = copy_of(v, (size_t)n * LD);
        bf16 *half = rounded(x, (size_t)n * CHANNELS);
        const float *const *pixels = (const float *const *)floats_of(t, side, x);
        winograd_input(t, (const void *const *)pixels, CHANNELS, v, LD);
        winograd_input_reference(t, pixels, CHANNELS, want, LD);
        assert_close(v, want, (size_t)n * LD, 1e-6, "inputs of %dx%d", t.rows, t.columns);
        memset(v, 0xff, CHANNELS * sizeof *v);
        winograd_bf16_input(t, (const void *const *)pixels_of(t, side, half, sizeof *half),
                            CHANNELS, v, LD);
        assert_close(v, want, (size_t)n * LD, 1e-6, "inputs of %dx%d, bf16", t.rows, t.columns);
        free(half);
        free(x);
        free(v);
        free(want);
    }
}

/* Half a unit of the last of 8 bits. */
static void assert_rounded(const bf16 *have, const float *want, size_t n, struct winograd_tile t)
{
    for (size_t i = 0; i < n; i++)
        cr_assert_float_eq(bf16_to_float(have[i]), want[i], 0x1.01p-8 * fabsf(want[i]) + 1e-5,
                           "%dx%d: %zu is %g, not %g", t.rows, t.columns, i,
                           (double)bf16_to_float(have[i]), (double)want[i]);
}

Test(winograd, outputs_equal_the_matrices)
{
    for (int i = 0; i < 2 * TILES; i++) {
        struct winograd_tile t = tiles[i / 2];
        int n = winograd_positions(t.m), side = winograd_outputs(t.m);
        size_t outputs = (size_t)(side * side) * CHANNELS;
        float *v = noise((size_t)n * LD, 1), *z = noise(outputs, 2);
        bf16 *half = rounded(z, outputs);
        float *want = copy_of(z, outputs);
        winograd_output(t, v, LD, CHANNELS, (void *const *)floats_of(t, side, z), i % 2);
        winograd_output_reference(t, v, LD, CHANNELS, floats_of(t, side, want), i % 2);
        assert_close(z, want, outputs, 1e-6, "outputs of %dx%d", t.rows, t.columns);
        winograd_bf16_output(t, v, LD, CHANNELS, pixels_of(t, side, half, sizeof *half), i % 2);
        assert_rounded(half, want, outputs, t);
        free(v);
        free(z);
        free(half);
        free(want);
    }
}

Test(winograd, output_gradients_equal_the_matrices)
{
    for (int i = 0; i < TILES; i++) {
        struct winograd_tile t = tiles[i];
        int n = winograd_positions(t.m), side = winograd_outputs(t.m);
        float *dz = noise((size_t)(side * side) * CHANNELS, 1), *v = noise((size_t)n * LD, 2);
        float *want = copy_of(v, (size_t)n * LD);
        bf16 *half = rounded(dz, (size_t)(side * side) * CHANNELS);
        const float *const *pixels = (const float *const *)floats_of(t, side, dz);
        winograd_output_gradient(t, (const void *const *)pixels, CHANNELS, v, LD);
        winograd_output_gradient_reference(t, pixels, CHANNELS, want, LD);
        assert_close(v, want, (size_t)n * LD, 1e-6, "output gradients of %dx%d", t.rows, t.columns);
        memset(v, 0xff, CHANNELS * sizeof *v);
        winograd_bf16_output_gradient(
            t, (const void *const *)pixels_of(t, side, half, sizeof *half), CHANNELS, v, LD);
        assert_close(v, want, (size_t)n * LD, 1e-6, "output gradients of %dx%d, bf16", t.rows,
                     t.columns);
        free(half);
        free(dz);
        free(v);
        free(want);
    }
}

Test(winograd, kernels_equal_the_matrices)
{
    for (int i = 0; i < 2 * SIZES; i++) {
        int m = sizes[i / 2], n = winograd_positions(m);
        float *w = noise(9 * CHANNELS, 1), *u = noise((size_t)n * LD, 2);
        float *want = copy_of(u, (size_t)n * LD);
        const float *from = i % 2 ? w + 8 * CHANNELS : w;
        ptrdiff_t tap_ld = i % 2 ? -CHANNELS : CHANNELS;
        winograd_kernel(m, from, tap_ld, CHANNELS, u, LD);
        winograd_kernel_reference(m, from, tap_ld, CHANNELS, want, LD);
        assert_close(u, want, (size_t)n * LD, 1e-6, "kernels of F(%d)", m);
        free(w);
        free(u);
        free(want);
    }
}

Test(winograd, kernel_gradients_equal_the_matrices)
{
    for (int i = 0; i < 2 * SIZES; i++) {
        int m = sizes[i / 2], n = winograd_positions(m);
        float *u = noise((size_t)n * LD, 1), *dw = noise(9 * CHANNELS, 2);
        float *want = copy_of(dw, 9 * CHANNELS);
        winograd_kernel_gradient(m, u, LD, CHANNELS, dw, CHANNELS, i % 2);
        winograd_kernel_gradient_reference(m, u, LD, CHANNELS, want, CHANNELS, i % 2);
        assert_close(dw, want, 9 * CHANNELS, 1e-6, "kernel gradients of F(%d)", m);
        free(u);
        free(dw);
        free(want);
    }
}

/* The matrices themselves: one tile's outputs are those of the convolution. */
Test(winograd, a_tile_is_convolved)
{
    for (int i = 0; i < TILES; i++) {
        struct winograd_tile t = tiles[i];
        int m = t.m, n = winograd_positions(m), side = winograd_outputs(m);
        int inputs = winograd_inputs(m), border = (side + 2 - inputs) / 2;
        float *x = noise((size_t)n, 1), *w = noise(9, 2), v[36] = {0}, u[36], z[16], want[16];
        const float *in[36];
        float *out[16];
        for (int k = 0; k < n; k++)
            in[k] = x + k;
        for (int k = 0; k < side * side; k++) {
            out[k] = z + k;
            z[k] = want[k] = 0;
            for (int tap = 0; k / side < t.rows && k % side < t.columns && tap < 9; tap++) {
                int y0 = k / side + tap / 3 - border, x0 = k % side + tap % 3 - border;
                if (y0 >= 0 && y0 < inputs && x0 >= 0 && x0 < inputs)
                    want[k] += w[tap] * x[y0 * inputs + x0];
            }
        }
        winograd_input_reference(t, in, 1, v, 1);
        winograd_kernel_reference(m, w, 1, 1, u, 1);
        for (int k = 0; k < n; k++)
            v[k] *= u[k];
        winograd_output_reference(t, v, 1, 1, out, false);
        assert_close(z, want, (size_t)(side * side), 1e-6, "a tile of %dx%d", t.rows, t.columns);
        free(x);
        free(w);
    }
}
