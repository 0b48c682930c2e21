#include "worker/layers/conv_bf16_grid.h"

#include "worker/kernels/bf16_vec.h"
#include "worker/team/dry_run.h"

struct bf16_grid bf16_grid_of(const struct conv *c)
{
    const struct window *w = &c->window;

    return bf16_grid_make(&(struct arch_conv){.in_size = w->in,
                                              .out_size = w->out,
                                              .stride = w->stride,
                                              .kernel = w->kernel,
                                              .padding = w->pad,
                                              .in_channels = w->channels,
                                              .out_channels = c->out_channels,
                                              .groups = c->groups});
}

struct bf16_grid bf16_grid_of_share(const struct conv *c, size_t images, int threads)
{
    struct bf16_grid g = bf16_grid_of(c);

    if (threads)
        bf16_grid_share(&g, images, threads);
    return g;
}

/* ---- taps */

size_t bf16_tap_number(const struct bf16_grid *g, struct bf16_tap t)
{
    size_t ky = g->tap_first + t.fy + t.ty * g->stride, kx = g->tap_first + t.fx + t.tx * g->stride;
    return ky * g->weights_side + kx;
}

bool bf16_next_tap(const struct bf16_grid *g, struct bf16_tap *t)
{
    if (++t->tx <= bf16_grid_reach(g, t->fx))
        return true;
    t->tx = 0;
    if (++t->ty <= bf16_grid_reach(g, t->fy))
        return true;
    t->ty = 0;
    if (++t->fx < g->phases)
        return true;
    t->fx = 0;
    return ++t->fy < g->phases;
}

size_t bf16_row_chunks(const struct bf16_grid *g)
{
    return bf16_round_up(g->kernel * g->ci, BF16_CHUNK) / BF16_CHUNK;
}

size_t bf16_panel_chunks(const struct bf16_grid *g, enum conv_direction direction)
{
    if (bf16_grid_is_first(g))
        return g->kernel * bf16_row_chunks(g);
    return g->kernel * g->kernel * (direction == CONV_DATA ? g->chunks_out : g->chunks_in);
}

size_t bf16_base_in(const struct bf16_grid *g, size_t j)
{
    return g->gi == g->ci ? 0 : g->gi < BF16_CHUNK ? j * 32 : j * 32 / g->go * g->gi;
}

size_t bf16_base_out(const struct bf16_grid *g, size_t j)
{
    return g->go == g->co ? 0 : g->go < BF16_CHUNK ? j * 32 : j * 32 / g->gi * g->go;
}

/* ---- positions */

/* Images of (size, size, c) as positions: (row, column) of an image is its pixel (stride row + fy -
 * pad, stride column + fx - pad), or zero. */
struct layout {
    size_t size, c, stride, fy, fx, pad, width;
};

static void conv_bf16_grid_lay_row(const struct layout *l, const bf16 *line, bf16 *to)
{
    size_t before = l->fx < l->pad ? (l->pad - l->fx + l->stride - 1) / l->stride : 0;
    size_t end = size_min((l->size + l->pad - l->fx + l->stride - 1) / l->stride, l->width);

    bf16_zero(to, before * l->c);
    if (l->stride == 1)
        memcpy(to + before * l->c, line, (end - before) * l->c * sizeof *to);
    else
        for (size_t b = before; b < end; b++)
            memcpy(to + b * l->c, line + (b * l->stride + l->fx - l->pad) * l->c,
                   l->c * sizeof *to);
    bf16_zero(to + end * l->c, (l->width - end) * l->c);
}

static void conv_bf16_grid_lay_rows(const struct layout *l, const bf16 *from, struct bf16_piece p,
                                    size_t positions, bf16 *to)
{
    size_t row = l->width * l->c;

    for (size_t r = p.row; r < p.row + p.rows; r++, to += row) {
        size_t y = r % l->width * l->stride + l->fy -
                   l->pad; /* wraps to a huge value above the first row */
        if (y < l->size)
            conv_bf16_grid_lay_row(l, from + (r / l->width * l->size + y) * l->size * l->c, to);
        else
            bf16_zero(to, row);
    }
    bf16_zero(to, (positions - p.rows * l->width) * l->c);
}

size_t bf16_grid_row(const struct bf16_grid *g, size_t line)
{
    return line / g->out * g->width + line % g->out;
}

size_t bf16_grid_line(const struct bf16_grid *g, size_t row, size_t size, size_t stride)
{
    return row / g->width * size + size_min(row % g->width * stride, size);
}

size_t bf16_grid_end_of_lines(const struct bf16_grid *g, size_t line)
{
    bool ends = line > 0 && bf16_grid_ends_with_lines(g);
    return ends ? bf16_grid_row(g, line - 1) + 1 : bf16_grid_row(g, line);
}

struct parallel_range bf16_grid_lines(const struct bf16_grid *g, size_t images,
                                      struct parallel_share share)
{
    struct parallel_range rows = parallel_range(images * g->width, share);
    return (struct parallel_range){bf16_grid_line(g, rows.first, g->out, 1),
                                   bf16_grid_line(g, rows.end, g->out, 1)};
}

struct bf16_piece bf16_next_piece(const struct bf16_grid *g, size_t row, size_t end)
{
    return (struct bf16_piece){row, size_min(end - row, g->rows)};
}

size_t bf16_rows_after(const struct bf16_grid *g, struct bf16_piece p, size_t wanted)
{
    size_t within = (p.row + p.rows) % g->width;
    return within ? size_min(wanted, g->width - within) : 0;
}

static size_t conv_bf16_grid_laid_positions(const struct bf16_grid *g, struct bf16_piece p)
{
    return bf16_grid_laid(g, p.rows * g->width);
}

size_t bf16_lay_x(const struct bf16_grid *g, const bf16 *x, struct bf16_piece p, bf16 *to)
{
    size_t positions = conv_bf16_grid_laid_positions(g, p);

    if (dry_run_moves_bf16(2 * g->phases * g->phases * positions * g->ci))
        return positions * g->ci;
    p.rows += bf16_rows_after(g, p, bf16_grid_reach(g, 0));
    for (size_t f = 0; f < g->phases * g->phases; f++) {
        struct layout l = {g->in, g->ci, g->stride, f / g->phases, f % g->phases, g->pad, g->width};
        conv_bf16_grid_lay_rows(&l, x, p, positions, to + f * positions * g->ci);
    }
    return positions * g->ci;
}

void bf16_lay_dz(const struct bf16_grid *g, const bf16 *dz, struct bf16_piece p, bf16 *to)
{
    struct layout l = {g->out, g->co, 1, 0, 0, g->lead, g->width};
    size_t positions = conv_bf16_grid_laid_positions(g, p);

    if (dry_run_moves_bf16(2 * positions * g->co))
        return;
    p.rows += bf16_rows_after(g, p, g->lead + bf16_grid_lead(g, 0));
    conv_bf16_grid_lay_rows(&l, dz, p, positions, to);
}

void bf16_find_pixels(const struct bf16_place *p, struct bf16_piece piece, int32_t *pixel)
{
    for (size_t row = piece.row; row < piece.row + piece.rows; row++)
        for (size_t c = 0; c < p->width; c++) {
            size_t i = row / p->width, r = row % p->width;
            size_t y = r * p->stride + p->y0, x = c * p->stride + p->x0;
            *pixel++ =
                r < p->rows && c < p->columns ? (int32_t)((i * p->size + y) * p->size + x) : -1;
        }
    for (int i = 0; i < BF16_ROWS; i++)
        *pixel++ = -1;
}
