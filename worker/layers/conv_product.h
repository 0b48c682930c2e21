/* Products of rows of pixels by panels of channels. A team shares one in whole im2col tiles. */
#pragma once

#include "worker/layers/conv_shape.h"

/* One pass over output pixels: of x for z, or of dz with the rotated kernel for dx */
struct conv_product {
    const struct conv *c;
    struct window window;
    size_t tile;     /* rows computed at a time: conv_tile_rows */
    bool in_place;   /* from is the im2col matrix */
    bool packed;     /* weights are panels */
    bool halved;     /* and those of strassen.h */
    bool transposed; /* weights are (channels, k): of a 1x1 for dx */
    const float *from, *weights;
    float *to;
    size_t channels; /* of `to` */
    struct conv_runs runs;
    size_t k_all; /* of the packed panels */
    bool add;
    float *col; /* the thread's own im2col tile */
    conv_rows *done;
    void *context;
};

/* Computes part of `to`: rows of pixels by columns of channels. */
void conv_product_block(const struct conv_product *p, const struct parallel_block *block);

/* All columns of these rows. */
void conv_product_team(const struct conv_product *p, struct parallel_range rows,
                       struct parallel_share share);

struct parallel_range conv_panels(size_t channels, struct parallel_share share);

/* Packs the panels of the rotated kernel (conv_shape.h): rows (ky, kx, c_out), columns c_in. */
void conv_pack_turned(const struct conv *c, struct parallel_range panels, const float *w,
                      float *to);

/* A thread's im2col tile: floats, and rows if it has `columns` columns. Those of a single thread
 * hold any of the convolution's products, whatever `columns` is. */
size_t conv_tile_floats(const struct conv *c, bool single);
size_t conv_tile_rows(const struct conv *c, size_t columns, bool single);
size_t conv_single_tile_floats(const struct conv *c); /* of a single thread, at most */

/* Whether a single thread multiplies by Strassen's algorithm, if it has rows enough. */
bool conv_may_halve(const struct conv *c);
bool conv_halves(const struct conv_part *part);
enum { HALVED_ROWS = 1024 }; /* of a tile, at most */

/* conv_tile_rows, or as many as divide the rows evenly. */
size_t conv_part_tile_rows(const struct conv_part *part, size_t columns);
