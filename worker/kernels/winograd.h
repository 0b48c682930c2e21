/*
 * Transforms of Winograd's minimal filtering for 3x3 kernels, F(2x2, 3x3) and F(4x4, 3x3) (Lavin
 * and Gray, arXiv:1509.09308): a tile of m x m outputs needs (m + 2)^2 products per pair of
 * channels instead of 9 m^2. outputs = A^T [(G w G^T) . (B^T inputs B)] A
 *
 * F(2x2) evaluates polynomials at 0, 1, -1; F(4x4) at 0, +-2/3, +-3/2 instead of the usual 0, +-1,
 * +-2: an error four times smaller at the same cost.
 *
 * The last position of a dimension (infinity) serves its last output only. A tile of F(4x4) that
 * wants three rows or three columns of outputs goes without that row or column of positions: 30 or
 * 25 products instead of 36, the same values.
 *
 * An image of 2x2 pixels with its border of zeros needs 9 products, not 16: in one dimension
 * y0 = w1 (x0 + x1) + (w2 - w1) x1 and y1 = w1 (x0 + x1) + (w0 - w1) x0. Its inputs are the four
 * pixels, without the border.
 *
 * "Positions" are the (m + 2)^2 products of a tile, `ld` floats apart, so that each is a matrix
 * (tiles, channels). All functions take one tile (or one kernel) and a multiple of VEC channels.
 *
 * Pixels are void pointers, to floats here and to bf16 in the functions winograd_bf16_... below,
 * which compute in fp32 too and round outputs once, when they are written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { WINOGRAD_POSITIONS_MAX = 36, WINOGRAD_OUTPUTS_MAX = 16 };

/* m is 2 or 4 in all functions, or WINOGRAD_IMAGE: an image of 2x2 pixels. */
enum { WINOGRAD_IMAGE = 1 };

static inline int winograd_positions(int m)
{
    return (m + 2) * (m + 2);
}

/* Per side */
static inline int winograd_inputs(int m)
{
    return m == WINOGRAD_IMAGE ? 2 : m + 2;
}

static inline int winograd_outputs(int m)
{
    return m == WINOGRAD_IMAGE ? 2 : m;
}

/* The outputs that are wanted: all rows and columns, with m = 4 also three of either. Pixels and
 * positions keep their places; those that belong to unwanted outputs are not touched. */
struct winograd_tile {
    int m, rows, columns;
};

/* B^T d B: pixels[inputs^2] are the tile's inputs, row by row, each (channels). */
void winograd_input(struct winograd_tile t, const void *const *pixels, size_t channels, float *v,
                    size_t ld);

/* A^T M A, written or added to the tile's outputs, pixels[outputs^2]. */
void winograd_output(struct winograd_tile t, const float *v, size_t ld, size_t channels,
                     void *const *pixels, bool add);

/* A d A^T: the gradient of winograd_output, from the gradients of its outputs. */
void winograd_output_gradient(struct winograd_tile t, const void *const *pixels, size_t channels,
                              float *v, size_t ld);

/* G w G^T: tap (ky, kx) of w is at w + (3 ky + kx) tap_ld; a negative tap_ld rotates the kernel by
 * 180 degrees. */
void winograd_kernel(int m, const float *w, ptrdiff_t tap_ld, size_t channels, float *u, size_t ld);

/* G^T U G: the gradient of w from that of its transform. */
void winograd_kernel_gradient(int m, const float *u, size_t ld, size_t channels, float *dw,
                              size_t tap_ld, bool add);

__typeof__(winograd_input) winograd_bf16_input;
__typeof__(winograd_output) winograd_bf16_output;
__typeof__(winograd_output_gradient) winograd_bf16_output_gradient;
