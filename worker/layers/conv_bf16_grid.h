/* A bf16 convolution on its grid of positions (common/net/bf16_grid.h): taps and images */
#pragma once

#include <string.h>

#include "common/net/bf16_grid.h"
#include "worker/kernels/bf16.h"
#include "worker/team/parallel.h"
#include "worker/layers/conv_shape.h"

struct bf16_grid bf16_grid_of(const struct conv *c);
/* With pieces that fit the scratch memory for so many images and threads; threads 0: whole. */
struct bf16_grid bf16_grid_of_share(const struct conv *c, size_t images, int threads);

/* ---- taps and panels */

/* A tap. The order is that of the panels: phase by phase */
struct bf16_tap {
    size_t fy, fx; /* phase */
    size_t ty, tx; /* distance within the phase */
};

size_t bf16_tap_number(const struct bf16_grid *g, struct bf16_tap t); /* ky * kernel + kx */
/* Advances to the next tap, perhaps of the next phase. Returns false after the last. */
bool bf16_next_tap(const struct bf16_grid *g, struct bf16_tap *t);

size_t bf16_row_chunks(const struct bf16_grid *g); /* per row of the first layer's kernel */
size_t bf16_panel_chunks(const struct bf16_grid *g, enum conv_direction direction);

/* First channel of the other side that panel j is multiplied with. */
size_t bf16_base_in(const struct bf16_grid *g, size_t j);
size_t bf16_base_out(const struct bf16_grid *g, size_t j);

/* ---- positions */

/* Rows of positions, counted over the batch: image i has those from i width on */
struct bf16_piece {
    size_t row, rows;
};

size_t bf16_grid_row(const struct bf16_grid *g, size_t line); /* of z */
/* End of the rows of the lines before `line`. */
size_t bf16_grid_end_of_lines(const struct bf16_grid *g, size_t line);
/* A thread's lines of z. The shares balance rows of positions, which are what is multiplied. */
struct parallel_range bf16_grid_lines(const struct bf16_grid *g, size_t images,
                                      struct parallel_share share);
/* Lines before a row of positions, in a tensor of `size` lines per image, `stride` of them per
 * row. */
size_t bf16_grid_line(const struct bf16_grid *g, size_t row, size_t size, size_t stride);
/* The next rows from `row` on, as many as fit the scratch memory. */
struct bf16_piece bf16_next_piece(const struct bf16_grid *g, size_t row, size_t end);
/* Of `wanted` rows after a piece, those in its last image; 0 if it ends there. */
size_t bf16_rows_after(const struct bf16_grid *g, struct bf16_piece p, size_t wanted);

/* Lays out all phases of a piece of x (the whole tensor); returns the elements per phase. */
size_t bf16_lay_x(const struct bf16_grid *g, const bf16 *x, struct bf16_piece p, bf16 *to);
void bf16_lay_dz(const struct bf16_grid *g, const bf16 *dz, struct bf16_piece p, bf16 *to);

/* Pixels of a whole tensor by position: (y, x) = stride (row, column) + (y0, x0), of `rows` rows
 * and `columns` columns; -1: none */
struct bf16_place {
    size_t size, stride, y0, x0, rows, columns, width;
};

void bf16_find_pixels(const struct bf16_place *p, struct bf16_piece piece, int32_t *pixel);

static inline void bf16_zero(bf16 *to, size_t n)
{
    memset(to, 0, n * sizeof *to);
}
