/* Memory layout of a convolution in bf16: its grid of positions, and a thread's scratch memory. The
 * planner reports the size; the engine allocates it and computes in it. worker/layers/conv_bf16.h
 * gives the reasons. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/arch.h"

typedef uint16_t bf16;

/* In matrix products: columns and rows of a panel's chunks; rows of a left-hand side's tile */
enum { BF16_COLUMNS = 32, BF16_CHUNK = 32, BF16_CHUNK_SIZE = BF16_CHUNK * BF16_COLUMNS };
enum { BF16_ROWS = 32 };

struct bf16_grid {
    size_t in, out, stride, kernel, pad, ci, co; /* without the taps that only see padding */
    size_t weights_side, tap_first; /* taps of the weights, and which of them is the first here */
    size_t gi, go;                  /* channels of a group */
    size_t chunks_in;  /* chunks of 32 channels of x that a panel of outputs needs at each tap */
    size_t chunks_out; /* chunks of dz that a panel of inputs needs */
    size_t phases;   /* in each direction: number of remainders modulo the stride that have taps */
    size_t width;    /* positions of a row, rows of an image */
    size_t lead;     /* zero rows and columns before dz */
    size_t slack;    /* positions after a piece that its products read */
    size_t rows;     /* maximum rows of a piece */
    size_t in_place; /* maximum rows of x in a piece that is computed in place */
    bool x_in_place, dz_in_place;
};

struct bf16_grid bf16_grid_make(const struct arch_conv *c);
void bf16_grid_share(struct bf16_grid *g, size_t images, int threads);
/* Returns whether this is the first layer, whose channels do not fill a chunk. */
bool bf16_grid_is_first(const struct bf16_grid *g);
bool bf16_grid_is_large(const struct bf16_grid *g);
/* Returns whether the rows after an image's last line are zeros; with a stride some are dx's. */
bool bf16_grid_ends_with_lines(const struct bf16_grid *g);

/* Positions of phase f before the first pixel, and up to the end of the last one */
size_t bf16_grid_lead(const struct bf16_grid *g, size_t f);
size_t bf16_grid_end(const struct bf16_grid *g, size_t f);
/* Distance of the last tap in phase f */
size_t bf16_grid_reach(const struct bf16_grid *g, size_t f);
/* Positions of a group; rows for a 1x1 in place */
size_t bf16_grid_positions(const struct bf16_grid *g);
/* These positions plus those that their products read */
size_t bf16_grid_laid(const struct bf16_grid *g, size_t positions);

/* The sums of dw are read and written once per block of positions. */
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
    bf16 *tail;      /* (32, the larger of the two channel numbers) */
    bf16 *left;      /* first layer only: (its rows, BF16_LEFT_LD) */
    float *dw;       /* first layer only: its rows, rounded up to a multiple of 32 */
    int32_t *pixel;  /* (positions + rows of a tile): pixel of a tensor for each position */
    size_t *chunk;   /* (chunks of a panel) */
    size_t *block;   /* (chunks in a block of positions) */
    size_t ld;       /* row length of x_columns */
    size_t bytes;
};

/* SHARED: backward with dw's factors in memory of the team, without x_columns and dz_panels */
enum bf16_use { BF16_FORWARD, BF16_BACKWARD, BF16_BACKWARD_SHARED };

/* memory NULL: only computes the size. */
struct bf16_scratch bf16_scratch_of(const struct bf16_grid *g, enum bf16_use use, void *memory);
size_t
bf16_first_layer_rows(const struct bf16_grid *g); /* rows of dw, rounded up to a multiple of 32 */

/* Blocks of 32 by 32 channels of dw, of all taps */
size_t bf16_grid_dw_blocks(const struct bf16_grid *g);

/* Several threads can compute dw in two ways. Each computes the part of its lines, and the parts
 * are added up; or together they make the factors of dw (x in columns, panels of dz), and each sums
 * some blocks of dw over all lines. The latter reads more if images are large, so it is for few
 * images and many weights. Returns its maximum number of images; 0 if dw has too few blocks. */
size_t bf16_shared_images(const struct bf16_grid *g, int threads);

/* Factors of `images` images, made by the threads in pieces */
struct bf16_shared {
    size_t pieces; /* maximum per thread */
    size_t ld;     /* row length of x in columns */
    size_t columns_bytes, piece_bytes;
};
struct bf16_shared bf16_shared_of(const struct bf16_grid *g, size_t images, int threads);

/* Maxima over all convolutions of a network: scratch memory per thread; the part of dw in backward
 * that each thread but the first needs; the factors of all threads */
struct bf16_thread_bytes {
    size_t scratch, dw, shared;
};
struct bf16_thread_bytes bf16_thread_bytes_of(const struct arch_shape *shape, bool backward,
                                              size_t images, int threads);

static inline size_t bf16_round_up(size_t x, size_t unit)
{
    return (x + unit - 1) / unit * unit;
}
