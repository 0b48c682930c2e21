/*
 * dw = col^T dz is cut into blocks, each of which wants sums over all rows. Rows of all blocks, one
 * block after the other and by the work they are, form the line that is shared out: a thread has
 * some blocks to itself, which go to dw at once, and parts of the rows of at most two others, whose
 * sums lie in its own memory until all threads' are added, in order. So no thread has a copy of dw,
 * and the shares are even whatever the threads.
 *
 * Where dw is small and rows are many there is one block, all of it.
 */
#pragma once

#include "worker/layers/conv_product.h"

struct conv_blocks {
    const struct conv *c;
    size_t rows; /* of the im2col matrix, or images where it goes by pixel */
    bool whole, pixel;
    int first_tap, taps;     /* of one direction */
    size_t k_parts, n_parts; /* of a tap */
    size_t n_unit;           /* columns are cut at its multiples */
    size_t count;            /* of blocks */
    size_t work;             /* of all of them */
    size_t own_floats;       /* of a thread's own memory, before its sums */
};

/* In each thread's own memory the sums come after what it works in itself, own_floats: tiles of the
 * im2col matrix and what replaces them, for z, dx and dw (of it for dw in blocks
 * conv_gathered_floats). */
struct conv_blocks conv_blocks_of(const struct conv *c, int images, int threads, size_t own_floats);

/* Is dw one block, for so many images and threads, or for any? */
bool conv_sums_whole(const struct conv *c, int images, int threads);
bool conv_may_sum_whole(const struct conv *c);

size_t conv_gathered_floats(const struct conv *c);

/* The sums, where dw is cut: conv_sums_floats. */
void conv_sum_blocks(const struct conv_blocks *s, const struct conv_backward *b,
                     struct parallel_share share, const struct conv_memory *memory);
size_t conv_sums_floats(void);

/* The sums where it is not, tile of rows by tile: with `data`, dx of the rows too, while dz is in
 * the cache. conv_sums_whole_floats. */
void conv_sum_whole(const struct conv_blocks *s, const struct conv_backward *b,
                    struct parallel_share share, const struct conv_memory *memory,
                    const struct conv_product *data);
size_t conv_sums_whole_floats(const struct conv *c);

/* After a barrier: what several threads have sums of goes to dw, a share of the weights each. */
void conv_add_sums(const struct conv_blocks *s, const struct conv_backward *b,
                   struct parallel_share share, const struct conv_memory *memory);
