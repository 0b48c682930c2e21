/*
 * The weight gradient dw = col^T dz is cut into blocks, each a sum over all rows. The rows of all
 * blocks, block after block and weighted by work, form the sequence that threads share: a thread
 * has some blocks alone, which go directly to dw, and parts of at most two others, whose sums stay
 * in its own memory until all threads' are added in order. So threads need no copies of dw and the
 * shares are even.
 *
 * If dw is small and rows are many there is a single block.
 */
#pragma once

#include "worker/layers/conv_product.h"

struct conv_blocks {
    struct conv_part part;
    size_t rows; /* of the im2col matrix, or images with CONV_PIXEL */
    bool whole, pixel, single;
    int first_tap, taps;     /* per direction */
    size_t k_parts, n_parts; /* of a tap */
    size_t n_unit;           /* columns are cut at its multiples */
    size_t count;            /* number of blocks */
    size_t work;             /* of all blocks */
    size_t own_floats;       /* of a thread's own memory, before its sums */
};

/* A thread's sums follow its work space of own_floats for z, dx and dw (conv_gathered_floats) */
struct conv_blocks conv_blocks_of(const struct conv_part *part, size_t own_floats);

/* Whether dw of several threads is a single block, or may be for some number of them. */
bool conv_sums_whole(const struct conv_part *part);
bool conv_may_sum_whole(const struct conv *c);

size_t conv_gathered_floats(const struct conv *c);

/* Sums dw in several blocks: conv_sums_floats. */
void conv_sum_blocks(const struct conv_blocks *s, const struct conv_backward *b);
size_t conv_sums_floats(void);

/* How dx is computed tile by tile together with dw, while dz is in cache: as a product of the same
 * rows (of a 1x1), or as an im2col matrix whose pixels are added up (by a single thread). */
struct conv_sums_data {
    const struct conv_product *product; /* NULL: the latter */
    const float *weights;               /* for the latter */
    bool packed;
};

/* Sums dw of these rows as one block: conv_sums_whole_floats. A single thread adds to dw, unless
 * `first`; others' sums are added by conv_add_sums. data NULL: no dx. */
void conv_sum_whole(const struct conv_blocks *s, const struct conv_backward *b,
                    struct parallel_range rows, bool first, const struct conv_sums_data *data);
size_t conv_sums_whole_floats(const struct conv *c);

/* After a barrier: adds the sums of several threads to dw, a share of the weights per thread. */
void conv_add_sums(const struct conv_blocks *s, const struct conv_backward *b);
