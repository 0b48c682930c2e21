#include "worker/layers/bf16/conv_bf16.h"

#include "worker/layers/bf16/conv_bf16_parts.h"
#include "worker/layers/bf16/conv_bf16_rows.h"

bool conv_bf16_takes(const struct conv *c)
{
    struct bf16_grid g = bf16_grid_of(c);

    if (g.co % BF16_COLUMNS || (g.ci % BF16_CHUNK && !(bf16_grid_is_first(&g) && c->groups == 1)))
        return false;
    return c->groups == 1 || (g.gi == g.go && (g.gi % BF16_CHUNK == 0 || BF16_CHUNK % g.gi == 0));
}

/* Distances of forward's chunks; `phase` elements lie between two phases. */
static void conv_bf16_forward_chunks(const struct bf16_grid *g, size_t phase, size_t *chunk)
{
    struct bf16_tap t = {0};

    do
        for (size_t i = 0; i < g->chunks_in; i++)
            *chunk++ =
                (t.fy * g->phases + t.fx) * phase + (t.ty * g->width + t.tx) * g->ci + i * 32;
    while (bf16_next_tap(g, &t));
}

static void conv_bf16_forward_in_place(const struct bf16_grid *g, const struct bf16_scratch *s,
                                       const bf16 *packed, const bf16 *x, bf16 *z, size_t row,
                                       size_t last, conv_bf16_rows *done, void *context)
{
    size_t step = bf16_grid_positions(g), chunks = bf16_panel_chunks(g, CONV_FORWARD);

    conv_bf16_forward_chunks(g, 0, s->chunk);
    for (; row < last; row += step) {
        size_t rows = size_min(last - row, step);
        bf16_multiply_rows(&(struct bf16_rows){
            .p = {x + row * g->ci, g->ci, s->chunk, chunks, packed},
            .positions = rows,
            .exact = true,
            .columns = g->co,
            .panel = chunks * BF16_CHUNK_SIZE,
            .to = z + row * g->co,
            .g = g,
            .base = bf16_base_in
        });
        if (done)
            done(row, rows, context);
    }
}

static void conv_bf16_forward_piece(const struct bf16_grid *g, const struct bf16_scratch *s,
                                    const bf16 *packed, const bf16 *x, bf16 *z,
                                    struct bf16_piece piece)
{
    size_t chunks = bf16_panel_chunks(g, CONV_FORWARD);
    struct bf16_place place = {g->out, 1, 0, 0, g->out, g->out, g->width};

    conv_bf16_forward_chunks(g, bf16_lay_x(g, x, piece, s->x), s->chunk);
    bf16_find_pixels(&place, piece, s->pixel);
    bf16_multiply_rows(&(struct bf16_rows){
        .p = {s->x, g->ci, s->chunk, chunks, packed},
        .positions = piece.rows * g->width,
        .columns = g->co,
        .panel = chunks * BF16_CHUNK_SIZE,
        .pixel = s->pixel,
        .to = z,
        .g = g,
        .base = bf16_base_in
    });
}

static void conv_bf16_forward_pieces(const struct bf16_grid *g, const struct bf16_scratch *s,
                                     const bf16 *packed, const void *x, bf16 *z, size_t first,
                                     size_t end, conv_bf16_rows *done, void *context, bool bf16_x)
{
    size_t last = bf16_grid_behind(g, end);
    struct bf16_piece p;

    for (size_t row = bf16_grid_row(g, first); row < last; row += p.rows) {
        p = bf16_next_piece(g, row, last);
        if (bf16_grid_is_first(g))
            bf16_forward_first(g, s, packed, x, bf16_x, z, p);
        else
            conv_bf16_forward_piece(g, s, packed, x, z, p);
        size_t line = bf16_grid_line(g, row, g->out, 1),
               behind = bf16_grid_line(g, row + p.rows, g->out, 1);
        if (done && behind > line)
            done(line * g->out, (behind - line) * g->out, context);
    }
}

void conv_bf16_forward(const struct conv *c, const bf16 *packed, const void *x, bf16 *z,
                       size_t first, size_t end, struct conv_bf16_scratch scratch,
                       conv_bf16_rows *done, void *context, bool bf16_x)
{
    struct bf16_grid g = bf16_grid_of_share(c, scratch.images, scratch.threads);
    struct bf16_scratch s = bf16_scratch_of(&g, BF16_FORWARD, scratch.memory);

    bf16_begin();
    if (g.x_in_place)
        conv_bf16_forward_in_place(&g, &s, packed, x, z, first * g.out, end * g.out, done, context);
    else
        conv_bf16_forward_pieces(&g, &s, packed, x, z, first, end, done, context, bf16_x);
    bf16_end();
}

struct parallel_range conv_bf16_lines(const struct conv *c, size_t images,
                                      struct parallel_share share)
{
    struct bf16_grid g = bf16_grid_of(c);
    return bf16_grid_lines(&g, images, share);
}

bool conv_bf16_keeps_lines(const struct conv *c)
{
    struct bf16_grid g = bf16_grid_of(c);
    return g.x_in_place || bf16_grid_is_first(&g);
}
