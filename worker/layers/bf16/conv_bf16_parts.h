/* The parts of a convolution of bf16 that its files share. */
#pragma once

#include "worker/layers/bf16/conv_bf16_grid.h"

struct conv_bf16_backward;

/* ---- the first layer, which reads fp32, or bf16, and has no dx */

void bf16_forward_first(const struct bf16_grid *g, const struct bf16_scratch *s, const bf16 *packed,
                        const void *x, bool bf16_x, bf16 *z, struct bf16_piece piece);
/* dw of the lines [first, end) */
void bf16_backward_first(const struct bf16_grid *g, const struct bf16_scratch *s,
                         const struct conv_bf16_backward *b, size_t first, size_t end);

/* ---- conv_bf16_pack.c: what dw multiplies: rows of dz as panels. tail: 32 rows */

/* The 32 rows from `row` on, of `rows` of c channels; the last ones are filled up with zeros in
 * tail. */
const bf16 *bf16_full_rows(const bf16 *from, size_t c, size_t rows, size_t row, bf16 *tail);
void bf16_pack_dz(const struct bf16_grid *g, const bf16 *dz, size_t rows, bf16 *tail, bf16 *panels);
