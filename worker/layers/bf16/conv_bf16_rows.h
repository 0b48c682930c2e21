/* Products of bf16 positions by panels: rows of z and of dx. */
#pragma once

#include "worker/layers/bf16/conv_bf16_grid.h"

struct bf16_rows {
    struct bf16_product p; /* of the first position and panel */
    size_t positions;
    bool exact;            /* nothing may be read behind the last position */
    size_t columns, panel; /* elements of a panel */
    const int32_t *pixel;  /* NULL: positions are pixels */
    bf16 *to;              /* (pixels, columns) */
    bool add;
    const struct bf16_grid *g;
    size_t (*base)(const struct bf16_grid *g, size_t j);
};

void bf16_multiply_rows(const struct bf16_rows *r);
