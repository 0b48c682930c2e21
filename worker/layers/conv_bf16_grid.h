/*
 * How a convolution of bf16 lies in memory (conv_bf16.h says why): its grid of positions, the order
 * of its taps, its scratch memory, and images laid out on the grid.
 */
#ifndef TRAIND_WORKER_LAYERS_CONV_BF16_GRID_H
#define TRAIND_WORKER_LAYERS_CONV_BF16_GRID_H

#include <string.h>

#include "worker/kernels/extent.h"
#include "worker/layers/conv_bf16.h"

/* How a convolution lies on its grid of positions. */
struct bf16_grid {
    size_t in, out, stride, kernel, pad, ci, co;
    size_t gi, go;     /* channels of a group */
    size_t chunks_in;  /* of 32 channels of x that a panel of outputs meets at each tap */
    size_t chunks_out; /* of dz that a panel of inputs meets */
    size_t phases;     /* of each direction: the remainders by the stride that have taps */
    size_t width;      /* positions of a row, rows of an image */
    size_t lead;       /* zero rows and columns before dz */
    size_t slack;      /* zero positions behind the last image */
    size_t images;     /* of a group */
    bool x_in_place, dz_in_place;
};

struct bf16_grid bf16_grid_of(const struct conv *c);
/* The first layer: fewer channels than a chunk. */
bool bf16_grid_is_first(const struct bf16_grid *g);
bool bf16_grid_is_large(const struct bf16_grid *g); /* its weights */

/* Positions of phase f before the first pixel, and before the end of the last one. */
size_t bf16_grid_lead(const struct bf16_grid *g, size_t f);
size_t bf16_grid_end(const struct bf16_grid *g, size_t f);
/* The last tap's distance in phase f. */
size_t bf16_grid_reach(const struct bf16_grid *g, size_t f);
/* Positions of a group; of a 1x1 in place, rows. */
size_t bf16_grid_positions(const struct bf16_grid *g);

/* ---- taps and panels */

/* Taps in the order of panels: phase by phase. */
struct bf16_tap {
    size_t fy, fx; /* phase */
    size_t ty, tx; /* distance within it */
};

size_t bf16_tap_number(const struct bf16_grid *g, struct bf16_tap t); /* ky * kernel + kx */
/* The next one; of another phase if there is none in this. False behind the last. */
bool bf16_next_tap(const struct bf16_grid *g, struct bf16_tap *t);

size_t bf16_row_chunks(const struct bf16_grid *g); /* of a row of the first layer's kernel */
size_t bf16_panel_chunks(const struct bf16_grid *g, enum conv_direction direction);

/* Of panel j: the first channel of the other side that it meets. */
size_t bf16_base_in(const struct bf16_grid *g, size_t j);
size_t bf16_base_out(const struct bf16_grid *g, size_t j);

/* ---- scratch memory */

/* dw's sums are read and written once a block of positions. */
enum {
    BF16_BLOCK_POSITIONS = 512,
    BF16_LARGE_BLOCK_POSITIONS = 2048,
    BF16_LEFT_LD = BF16_BLOCK_POSITIONS + 32
};

struct bf16_scratch {
    bf16 *x;         /* (phases^2, positions + slack, ci) */
    bf16 *x_columns; /* (phases^2, ci, ld): x transposed */
    bf16 *dz;        /* (positions + slack, co) */
    bf16 *dz_panels; /* (co / 32, positions / 32, ...) */
    bf16 *tail;      /* (32, the more channels) */
    bf16 *left;      /* of the first layer: (its rows, BF16_LEFT_LD) */
    float *dw;       /* of the first layer: its rows up to a multiple of 32 */
    int32_t *pixel;  /* (positions): of a tensor */
    size_t *chunk;   /* (chunks of a panel) */
    size_t *block;   /* (chunks of a block of positions) */
    size_t ld;       /* of x_columns */
    size_t bytes;
};

/* memory NULL: only its size. */
struct bf16_scratch bf16_scratch_of(const struct bf16_grid *g, bool backward, void *memory);
size_t bf16_first_layer_rows(const struct bf16_grid *g); /* of dw, up to a multiple of 32 */

/* ---- positions */

/* Rows of positions, counted through the batch: image i's begin at i width. Those behind the last
 * line of an image go with it. */
struct bf16_piece {
    size_t row, rows;
};

size_t bf16_grid_row(const struct bf16_grid *g, size_t line); /* of z */
/* Lines before a row of positions, of a tensor of `size` lines an image, `stride` of them a row. */
size_t bf16_grid_line(const struct bf16_grid *g, size_t row, size_t size, size_t stride);
/* At most the rows that fit into the scratch memory, from `row` on. */
struct bf16_piece bf16_next_piece(const struct bf16_grid *g, size_t row, size_t end);
/* Of `wanted` rows behind a piece, those of its last image; none if it ends with that. */
size_t bf16_rows_behind(const struct bf16_grid *g, struct bf16_piece p, size_t wanted);

/* All phases of a piece of x (the whole tensor); returns the elements of one. */
size_t bf16_lay_x(const struct bf16_grid *g, const bf16 *x, struct bf16_piece p, bf16 *to);
void bf16_lay_dz(const struct bf16_grid *g, const bf16 *dz, struct bf16_piece p, bf16 *to);

/* Pixels of a whole tensor of this size by position: (y, x) = stride (row, column) + (y0, x0), of
 * `rows` rows and `columns` columns; -1: none. */
struct bf16_place {
    size_t size, stride, y0, x0, rows, columns, width;
};

void bf16_find_pixels(const struct bf16_place *p, struct bf16_piece piece, int32_t *pixel);

/* ---- helpers */

static inline void bf16_zero(bf16 *to, size_t n)
{
    memset(to, 0, n * sizeof *to);
}

static inline size_t bf16_round_up(size_t x, size_t unit)
{
    return (x + unit - 1) / unit * unit;
}

#endif
