#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/winograd.h"

enum { CHANNELS = 3 * 16, LD = CHANNELS + 5 }; /* multiples of any vector */

static const int tiles[] = {2, 4};

/* `count` pixels of CHANNELS floats, in reverse order. */
static float **pixels_of(float *floats, int count)
{
    static float *pixels[WINOGRAD_POSITIONS_MAX];
    for (int i = 0; i < count; i++)
        pixels[i] = floats + (count - 1 - i) * CHANNELS;
    return pixels;
}

Test(winograd, inputs_equal_the_matrices)
{
    for (int i = 0; i < 2; i++) {
        int n = winograd_positions(tiles[i]);
        float *x = noise((size_t)n * CHANNELS, 1), *v = noise((size_t)n * LD, 2);
        float *want = copy_of(v, (size_t)n * LD);
        const float *const *pixels = (const float *const *)pixels_of(x, n);
        winograd_input(tiles[i], pixels, CHANNELS, v, LD);
        winograd_input_reference(tiles[i], pixels, CHANNELS, want, LD);
        assert_close(v, want, (size_t)n * LD, 1e-6, "inputs of F(%d)", tiles[i]);
        free(x);
        free(v);
        free(want);
    }
}

Test(winograd, outputs_equal_the_matrices)
{
    for (int i = 0; i < 4; i++) {
        int m = tiles[i / 2], n = winograd_positions(m);
        float *v = noise((size_t)n * LD, 1), *z = noise((size_t)(m * m) * CHANNELS, 2);
        float *want = copy_of(z, (size_t)(m * m) * CHANNELS);
        winograd_output(m, v, LD, CHANNELS, pixels_of(z, m * m), i % 2);
        winograd_output_reference(m, v, LD, CHANNELS, pixels_of(want, m * m), i % 2);
        assert_close(z, want, (size_t)(m * m) * CHANNELS, 1e-6, "outputs of F(%d)", m);
        free(v);
        free(z);
        free(want);
    }
}

Test(winograd, output_gradients_equal_the_matrices)
{
    for (int i = 0; i < 2; i++) {
        int m = tiles[i], n = winograd_positions(m);
        float *dz = noise((size_t)(m * m) * CHANNELS, 1), *v = noise((size_t)n * LD, 2);
        float *want = copy_of(v, (size_t)n * LD);
        const float *const *pixels = (const float *const *)pixels_of(dz, m * m);
        winograd_output_gradient(m, pixels, CHANNELS, v, LD);
        winograd_output_gradient_reference(m, pixels, CHANNELS, want, LD);
        assert_close(v, want, (size_t)n * LD, 1e-6, "output gradients of F(%d)", m);
        free(dz);
        free(v);
        free(want);
    }
}

Test(winograd, kernels_equal_the_matrices)
{
    for (int i = 0; i < 4; i++) {
        int m = tiles[i / 2], n = winograd_positions(m);
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
    for (int i = 0; i < 4; i++) {
        int m = tiles[i / 2], n = winograd_positions(m);
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
    for (int i = 0; i < 2; i++) {
        int m = tiles[i], n = winograd_positions(m);
        float *x = noise((size_t)n, 1), *w = noise(9, 2), v[36], u[36], z[16], want[16];
        const float *in[36];
        float *out[16];
        for (int k = 0; k < n; k++)
            in[k] = x + k;
        for (int k = 0; k < m * m; k++)
            out[k] = z + k;
        winograd_input_reference(m, in, 1, v, 1);
        winograd_kernel_reference(m, w, 1, 1, u, 1);
        for (int k = 0; k < n; k++)
            v[k] *= u[k];
        winograd_output_reference(m, v, 1, 1, out, false);
        for (int k = 0; k < m * m; k++) {
            want[k] = 0;
            for (int t = 0; t < 9; t++)
                want[k] += w[t] * x[(k / m + t / 3) * (m + 2) + k % m + t % 3];
        }
        assert_close(z, want, (size_t)(m * m), 1e-6, "a tile of F(%d)", m);
        free(x);
        free(w);
    }
}
