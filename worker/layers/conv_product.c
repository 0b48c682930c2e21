#include "worker/layers/conv_product.h"

#include "worker/kernels/gemm.h"
#include "worker/kernels/strassen.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/kernels/window.h"
#include "worker/team/parallel.h"

/* Measured best: a tile fits the second-level cache, unless its weights do not; a thread of several
 * has fewer rows for it. */
enum {
    TILE_FLOATS = 512 * 1024 / 4,
    LARGE_TILE_FLOATS = 1024 * 1024 / 4,
    SINGLE_LARGE_TILE_FLOATS = 2048 * 1024 / 4,
    SINGLE_TILE_ROWS = 16 /* a multiple of them */
};

size_t conv_tile_floats(const struct conv *c, bool single)
{
    if (conv_weights(c) <= TILE_FLOATS)
        return TILE_FLOATS;
    return single ? SINGLE_LARGE_TILE_FLOATS : LARGE_TILE_FLOATS;
}

static size_t conv_product_widest_columns(const struct conv *c)
{
    struct window turned = conv_turned_window(c);
    size_t widest = size_max(conv_columns(&c->window), (size_t)c->out_channels);

    return conv_turns_kernel(c) ? size_max(widest, conv_columns(&turned)) : widest;
}

/* Rounding errors depend on where tiles end, so other sizes give other last bits. */
size_t conv_tile_rows(const struct conv *c, size_t columns, bool single)
{
    size_t unit = single ? SINGLE_TILE_ROWS : tile_rows();
    size_t widest = single ? conv_product_widest_columns(c) : columns;

    return size_max(conv_tile_floats(c, single) / widest / unit * unit, unit);
}

size_t conv_single_tile_floats(const struct conv *c)
{
    return conv_tile_rows(c, 0, true) * conv_product_widest_columns(c);
}

enum { HALVED_ROWS_MIN = 384 };

bool conv_may_halve(const struct conv *c)
{
    return c->algorithm == CONV_TILE && conv_reads_in_place(c) &&
           strassen_takes((size_t)c->out_channels, (size_t)c->window.channels);
}

static size_t conv_product_rows(const struct conv_part *part)
{
    return (size_t)part->images * conv_pixels_out(part->c);
}

bool conv_halves(const struct conv_part *part)
{
    return conv_part_is_single(part) && conv_product_rows(part) >= HALVED_ROWS_MIN &&
           conv_may_halve(part->c);
}

size_t conv_part_tile_rows(const struct conv_part *part, size_t columns)
{
    size_t rows = conv_product_rows(part), tiles = (rows + HALVED_ROWS - 1) / HALVED_ROWS;

    if (!conv_halves(part))
        return conv_tile_rows(part->c, columns, conv_part_is_single(part));
    return (rows + tiles - 1) / tiles;
}

static size_t conv_product_tiles_of(size_t rows)
{
    return (rows + tile_rows() - 1) / tile_rows();
}

static void conv_product_multiply_tile(const struct conv_product *p, const float *col, size_t rows,
                                       size_t column, size_t columns, float *to)
{
    size_t k = conv_columns(&p->window), n = p->channels;

    if (p->halved)
        strassen_gemm(rows, n, k, col, k, p->weights, to, n, p->add);
    for (size_t i = 0; !p->halved && i < p->runs.count; i++) {
        size_t row = p->runs.first + i * p->runs.step;
        size_t length = p->runs.length;
        const float *a = col + i * length;
        bool add = p->add || i > 0;
        struct tile_matrix b = {p->weights + row * n + column, n, false, false};
        if (p->packed)
            b = (struct tile_matrix){p->weights + row * tile_columns() + column * p->k_all,
                                     p->k_all, false, true};
        else if (p->transposed)
            b = (struct tile_matrix){p->weights + column * k, k, true, false};
        if (p->packed || conv_uses_tile(p->c, n))
            tile_gemm(rows, columns, length, a, k, &b, to, n, add);
        else
            (p->transposed ? gemm_nt : gemm_nn)(rows, columns, length, a, k, b.data, b.ld, to, n,
                                                add);
    }
}

void conv_product_block(const struct conv_product *p, const struct parallel_block *block)
{
    size_t k = conv_columns(&p->window), end = block->row + block->rows;

    for (size_t row = block->row, rows; row < end; row += rows) {
        const float *col = p->in_place ? p->from + row * k : p->col;
        rows = size_min(end - row, p->tile);
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
    struct parallel_range rows;
};

static void product_piece(const struct parallel_piece *piece, void *context)
{
    const struct product_of_rows *of = context;
    const struct conv_product *p = of->p;
    struct parallel_block block[PARALLEL_BLOCKS];
    size_t rows = of->rows.end - of->rows.first;
    int blocks = parallel_matrix(rows, conv_product_tiles_of(rows), p->channels,
                                 p->packed ? tile_columns() : p->channels,
                                 parallel_piece_share(piece), block);

    for (int i = 0; i < blocks; i++) {
        block[i].row += of->rows.first;
        conv_product_block(p, &block[i]);
    }
}

void conv_product_team(const struct conv_product *p, struct parallel_range rows,
                       struct parallel_share share)
{
    struct product_of_rows of = {p, rows};

    parallel_take(share, (rows.end - rows.first) / (size_t)share.parts / p->tile, product_piece,
                  &of);
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
