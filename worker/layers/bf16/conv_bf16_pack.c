/* What a convolution of bf16 multiplies as panels: the weights, and rows of dz. */
#include "worker/layers/bf16/conv_bf16.h"
#include "worker/layers/bf16/conv_bf16_parts.h"
#include "worker/team/dry_run.h"

size_t conv_bf16_panels(const struct conv *c, enum conv_direction direction)
{
    return (size_t)(direction == CONV_DATA ? c->window.channels : c->out_channels) / BF16_COLUMNS;
}

size_t conv_bf16_packed(const struct conv *c, enum conv_direction direction)
{
    struct bf16_grid g = bf16_grid_of(c);
    return conv_bf16_panels(c, direction) * bf16_panel_chunks(&g, direction) * BF16_CHUNK_SIZE;
}

/* 32 channels in and out, of groups of fewer: zero between different groups. */
static void pack_small_groups(const struct bf16_grid *g, const float *w, size_t tap, size_t j,
                              bool transposed, bf16 *chunk)
{
    float block[32 * 32] = {0};

    for (size_t o = 0; o < 32; o++)
        for (size_t i = 0; i < g->gi; i++)
            block[(o / g->gi * g->gi + i) * 32 + o] = w[(tap * g->gi + i) * g->co + j * 32 + o];
    bf16_pack_floats(block, 32, transposed, 32, chunk);
}

static void pack_panel(const struct bf16_grid *g, enum conv_direction direction, const float *w,
                       size_t j, bf16 *chunk)
{
    bool back = direction == CONV_DATA;
    size_t chunks = back ? g->chunks_out : g->chunks_in;
    struct bf16_tap t = {0};

    do {
        const float *at = w + bf16_tap_number(g, t) * g->gi * g->co;
        if (back)
            at += (j * 32 % g->gi) * g->co + bf16_base_out(g, j);
        else
            at += j * 32;
        for (size_t i = 0; i < chunks; i++, chunk += BF16_CHUNK_SIZE)
            if (g->gi < BF16_CHUNK)
                pack_small_groups(g, w, bf16_tap_number(g, t), j, back, chunk);
            else
                bf16_pack_floats(at + i * 32 * (back ? 1 : g->co), g->co, back, 32, chunk);
    } while (bf16_next_tap(g, &t));
}

static void pack_first_layer(const struct bf16_grid *g, const float *w, size_t j, bf16 *chunk)
{
    size_t rows = g->kernel * g->ci;

    for (size_t ky = 0; ky < g->kernel; ky++)
        for (size_t i = 0; i < rows; i += 32, chunk += BF16_CHUNK_SIZE)
            bf16_pack_floats(w + (ky * rows + i) * g->co + j * 32, g->co, false,
                             size_min(rows - i, 32), chunk);
}

void conv_bf16_pack(const struct conv *c, enum conv_direction direction, const float *w,
                    size_t first, size_t end, bf16 *packed)
{
    struct bf16_grid g = bf16_grid_of(c);
    size_t size = bf16_panel_chunks(&g, direction) * BF16_CHUNK_SIZE;

    if (dry_run_moves_bf16(3 * (end - first) * size)) /* floats are read */
        return;
    for (size_t j = first; j < end; j++)
        if (bf16_grid_is_first(&g))
            pack_first_layer(&g, w, j, packed + j * size);
        else
            pack_panel(&g, direction, w, j, packed + j * size);
}

const bf16 *bf16_full_rows(const bf16 *from, size_t c, size_t rows, size_t row, bf16 *tail)
{
    if (row + 32 <= rows)
        return from + row * c;
    memcpy(tail, from + row * c, (rows - row) * c * sizeof *tail);
    bf16_zero(tail + (rows - row) * c, (32 - (rows - row)) * c);
    return tail;
}

void bf16_pack_dz(const struct bf16_grid *g, const bf16 *dz, size_t rows, bf16 *tail, bf16 *panels)
{
    size_t size = bf16_round_up(rows, 32) * BF16_COLUMNS;

    if (dry_run_moves_bf16(2 * rows * g->co))
        return;
    for (size_t row = 0; row < rows; row += 32) {
        const bf16 *from = bf16_full_rows(dz, g->co, rows, row, tail);
        for (size_t j = 0; j < g->co / 32; j++)
            bf16_pack(from + j * 32, g->co, panels + j * size + row * BF16_COLUMNS);
    }
}
