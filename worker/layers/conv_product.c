#include "worker/layers/conv_product.h"

#include "worker/kernels/gemm.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/kernels/window.h"
#include "worker/team/parallel.h"

/* Smaller than the im2col tile of a single thread (conv.c), as is a thread's share. */
enum { TILE_FLOATS = 512 * 1024 / 4, LARGE_TILE_FLOATS = 1024 * 1024 / 4 };

size_t conv_tile_floats(const struct conv *c)
{
    return conv_weights(c) > TILE_FLOATS ? LARGE_TILE_FLOATS : TILE_FLOATS;
}

size_t conv_tile_rows(const struct conv *c, size_t columns)
{
    size_t rows = conv_tile_floats(c) / columns / tile_rows() * tile_rows();
    return rows < tile_rows() ? tile_rows() : rows;
}

static size_t conv_product_tiles_of(size_t rows)
{
    return (rows + tile_rows() - 1) / tile_rows();
}

static void conv_product_multiply_tile(const struct conv_product *p, const float *col, size_t rows,
                                       size_t column, size_t columns, float *to)
{
    size_t k = conv_columns(&p->window), n = p->channels;

    for (size_t i = 0; i < p->runs.count; i++) {
        size_t row = p->runs.first + i * p->runs.step;
        bool add = p->add || i > 0;
        struct tile_matrix b = {p->weights + row * tile_columns() + column * p->k_all, p->k_all,
                                false, true};
        if (p->packed)
            tile_gemm(rows, columns, p->runs.length, col + i * p->runs.length, k, &b, to, n, add);
        else
            gemm_nn(rows, columns, p->runs.length, col + i * p->runs.length, k,
                    p->weights + row * n + column, n, to, n, add);
    }
}

static size_t product_tile(const struct conv_product *p)
{
    return conv_tile_rows(p->c, size_max(conv_columns(&p->window), p->channels));
}

void conv_product_block(const struct conv_product *p, const struct parallel_block *block)
{
    size_t k = conv_columns(&p->window), end = block->row + block->rows;
    size_t tile = product_tile(p);

    for (size_t row = block->row, rows; row < end; row += rows) {
        const float *col = p->in_place ? p->from + row * k : p->col;
        rows = size_min(end - row, tile);
        if (!p->in_place)
            im2col(&p->window, p->from, row, rows, p->col);
        conv_product_multiply_tile(p, col, rows, block->column, block->columns,
                                   p->to + row * p->channels + block->column);
        conv_call_hook(p->done, (struct parallel_block){row, rows, block->column, block->columns},
                       p->context);
    }
}

struct product_of_rows {
    const struct conv_product *p;
    size_t rows;
};

static void product_piece(const struct parallel_piece *piece, void *context)
{
    const struct product_of_rows *of = context;
    const struct conv_product *p = of->p;
    struct parallel_block block[PARALLEL_BLOCKS];
    int blocks = parallel_matrix(of->rows, conv_product_tiles_of(of->rows), p->channels,
                                 p->packed ? tile_columns() : p->channels,
                                 parallel_piece_share(piece), block);

    for (int i = 0; i < blocks; i++)
        conv_product_block(p, &block[i]);
}

void conv_product_team(const struct conv_product *p, size_t rows, struct parallel_share share)
{
    struct product_of_rows of = {p, rows};

    parallel_take(share, rows / (size_t)share.parts / product_tile(p), product_piece, &of);
}

struct parallel_range conv_panels(size_t channels, struct parallel_share share)
{
    return parallel_range(channels / tile_columns(), share);
}

void conv_pack_turned(const struct conv *c, struct parallel_range panels, const float *w, float *to)
{
    struct window t = conv_turned_window(c);
    size_t ci = (size_t)c->window.channels, co = (size_t)c->out_channels;
    size_t first = panels.first * tile_columns(), count = panels.end * tile_columns() - first;
    int taps = window_taps(&t), kernel = t.kernel;
    size_t k = (size_t)(taps * taps) * co;

    for (int i = 0; i < taps * taps; i++) {
        int ky = kernel - 1 - (t.tap_first + i / taps), kx = kernel - 1 - (t.tap_first + i % taps);
        const float *tap = w + (size_t)(ky * kernel + kx) * ci * co;
        struct tile_matrix b = {tap + first * co, co, true, false};
        tile_pack(&b, co, count, to + first * k + (size_t)i * co * tile_columns(), k);
    }
}
