/* The parts of a convolution of bf16 that its files share. */
#pragma once

#include "worker/layers/bf16/conv_bf16_grid.h"

struct conv_bf16_backward;
struct conv_bf16_scratch;

/* With pieces that the scratch memory holds. */
struct bf16_grid bf16_grid_of_share(const struct conv *c, struct conv_bf16_scratch scratch);

/* ---- the first layer, which reads fp32, or bf16, and has no dx */

void bf16_forward_first(const struct bf16_grid *g, const struct bf16_scratch *s, const bf16 *packed,
                        const void *x, bool bf16_x, bf16 *z, struct bf16_piece piece);
/* dw of the lines [first, end) */
void bf16_backward_first(const struct bf16_grid *g, const struct bf16_scratch *s,
                         const struct conv_bf16_backward *b, size_t first, size_t end);

/* ---- what dw multiplies: rows of dz as panels. tail: 32 rows */

void bf16_pack_dz(const struct bf16_grid *g, const bf16 *dz, size_t rows, bf16 *tail, bf16 *panels);
