#include "worker/layers/conv_bf16_grid.h"

#include "worker/kernels/bf16_vec.h"
#include "worker/kernels/dry_run.h"

/* Measured best: what a group of images (or rows, of a 1x1) takes of the second-level cache; more
 * where the weights, which are read once a group, are large. */
enum { GROUP_BYTES = 400 * 1024, LARGE_GROUP_BYTES = 1024 * 1024, LARGE_WEIGHTS = 512 * 1024 };

size_t bf16_grid_lead(const struct bf16_grid *g, size_t f)
{
    return f < g->pad ? (g->pad - f + g->stride - 1) / g->stride : 0;
}

size_t bf16_grid_end(const struct bf16_grid *g, size_t f)
{
    return (g->in + g->pad - f + g->stride - 1) / g->stride;
}

size_t bf16_grid_reach(const struct bf16_grid *g, size_t f)
{
    return (g->kernel - 1 - f) / g->stride;
}

/* So wide that what lies beyond a row's end is a zero of the next row's beginning. */
static void set_width(struct bf16_grid *g)
{
    g->lead = 0;
    for (size_t f = 0; f < g->phases; f++)
        if (bf16_grid_reach(g, f) > bf16_grid_lead(g, f))
            g->lead = extent_max(g->lead, bf16_grid_reach(g, f) - bf16_grid_lead(g, f));
    g->width = g->out + g->lead;
    for (size_t f = 0; f < g->phases; f++) {
        size_t reads = g->out + bf16_grid_reach(g, f);
        g->width = extent_max(g->width, bf16_grid_end(g, f));
        g->width = extent_max(g->width, reads - extent_min(bf16_grid_lead(g, f), reads));
    }
}

bool bf16_grid_is_large(const struct bf16_grid *g)
{
    return g->kernel * g->kernel * g->gi * g->co > LARGE_WEIGHTS;
}

static size_t group_bytes(const struct bf16_grid *g)
{
    return bf16_grid_is_large(g) ? LARGE_GROUP_BYTES : GROUP_BYTES;
}

struct bf16_grid bf16_grid_of(const struct conv *c)
{
    const struct window *w = &c->window;
    struct bf16_grid g = {.in = (size_t)w->in,
                          .out = (size_t)w->out,
                          .stride = (size_t)w->stride,
                          .kernel = (size_t)w->kernel,
                          .pad = (size_t)w->pad,
                          .ci = (size_t)w->channels,
                          .co = (size_t)c->out_channels,
                          .gi = (size_t)(w->channels / c->groups),
                          .go = (size_t)(c->out_channels / c->groups)};

    g.phases = extent_min(g.stride, g.kernel);
    g.chunks_in = extent_max(g.gi, BF16_CHUNK) / BF16_CHUNK;
    g.chunks_out = extent_max(g.go, BF16_CHUNK) / BF16_CHUNK;
    set_width(&g);
    g.slack = (g.kernel + g.pad + g.lead) * (g.width + 1) + 2 * BF16_ROWS;
    g.x_in_place = g.kernel == 1 && g.stride == 1 && !g.pad;
    g.dz_in_place = g.kernel == 1 && g.width == g.out;
    g.images = group_bytes(&g) / (g.width * g.width * extent_max(g.ci, g.co) * sizeof(bf16));
    g.images = g.images ? g.images : 1;
    return g;
}

bool bf16_grid_is_first(const struct bf16_grid *g)
{
    return g->ci < BF16_CHUNK;
}

/* ---- taps */

size_t bf16_tap_number(const struct bf16_grid *g, struct bf16_tap t)
{
    return (t.fy + t.ty * g->stride) * g->kernel + t.fx + t.tx * g->stride;
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

/* ---- scratch memory */

static void *carve(char *memory, size_t *used, size_t bytes)
{
    void *p = memory ? memory + *used : NULL;
    *used += bf16_round_up(bytes, 64);
    return p;
}

size_t bf16_grid_positions(const struct bf16_grid *g)
{
    if (g->x_in_place)
        return extent_max(group_bytes(g) / (extent_max(g->ci, g->co) * sizeof(bf16)) & ~(size_t)31,
                          64);
    return g->images * g->width * g->width;
}

size_t bf16_first_layer_rows(const struct bf16_grid *g)
{
    return bf16_round_up(g->kernel * g->kernel * g->ci, 32);
}

struct bf16_scratch bf16_scratch_of(const struct bf16_grid *g, bool backward, void *memory)
{
    struct bf16_scratch s = {0};
    size_t n = bf16_grid_positions(g), phases = g->phases * g->phases,
           all = bf16_round_up(n + g->slack, 32);
    size_t taps = g->kernel * g->kernel, chunks = extent_max(g->chunks_in, g->chunks_out);
    bool first = bf16_grid_is_first(g);

    /* rows that do not fall on each other in the first-level cache */
    s.ld = all + (all / 32 % 2 ? 0 : 32);
    s.chunk = carve(memory, &s.bytes, (taps * chunks + g->kernel * 32) * sizeof *s.chunk);
    s.pixel = carve(memory, &s.bytes, all * sizeof *s.pixel);
    if (!g->x_in_place)
        s.x = carve(memory, &s.bytes, phases * all * (first ? g->stride : 1) * g->ci * sizeof *s.x);
    if (!backward)
        return s;
    s.block = carve(memory, &s.bytes, (all / 32 + 1) * sizeof *s.block);
    s.x_columns = carve(memory, &s.bytes,
                        (first ? g->stride * g->stride : phases) * g->ci * s.ld * sizeof *s.x);
    s.tail = carve(memory, &s.bytes, 32 * extent_max(g->ci, g->co) * sizeof *s.tail);
    if (first) {
        s.dw = carve(memory, &s.bytes, bf16_first_layer_rows(g) * g->co * sizeof *s.dw);
        s.dz = carve(memory, &s.bytes, BF16_BLOCK_POSITIONS * g->co * sizeof *s.dz);
        s.dz_panels = carve(memory, &s.bytes, BF16_BLOCK_POSITIONS * g->co * sizeof *s.dz);
        s.left = carve(memory, &s.bytes, bf16_first_layer_rows(g) * BF16_LEFT_LD * sizeof *s.left);
        return s;
    }
    s.dz = carve(memory, &s.bytes, (g->dz_in_place ? 0 : all * g->co) * sizeof *s.dz);
    s.dz_panels = carve(memory, &s.bytes, bf16_round_up(n, 32) * g->co * sizeof *s.dz);
    return s;
}

/* ---- positions */

/* Images of (size, size, c) as positions: (row, column) of an image is its pixel (stride row + fy -
 * pad, stride column + fx - pad), or zero. */
struct layout {
    size_t size, c, stride, fy, fx, pad, width;
};

static void lay_row(const struct layout *l, const bf16 *line, bf16 *to)
{
    size_t before = l->fx < l->pad ? (l->pad - l->fx + l->stride - 1) / l->stride : 0;
    size_t end = extent_min((l->size + l->pad - l->fx + l->stride - 1) / l->stride, l->width);

    bf16_zero(to, before * l->c);
    if (l->stride == 1)
        memcpy(to + before * l->c, line, (end - before) * l->c * sizeof *to);
    else
        for (size_t b = before; b < end; b++)
            memcpy(to + b * l->c, line + (b * l->stride + l->fx - l->pad) * l->c,
                   l->c * sizeof *to);
    bf16_zero(to + end * l->c, (l->width - end) * l->c);
}

/* Rows of positions; what is behind them, up to `positions`, is zero. */
static void lay_rows(const struct layout *l, const bf16 *from, struct bf16_piece p,
                     size_t positions, bf16 *to)
{
    size_t row = l->width * l->c;

    for (size_t r = p.row; r < p.row + p.rows; r++, to += row) {
        size_t y = r % l->width * l->stride + l->fy - l->pad; /* huge before the first */
        if (y < l->size)
            lay_row(l, from + (r / l->width * l->size + y) * l->size * l->c, to);
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
    return row / g->width * size + extent_min(row % g->width * stride, size);
}

struct bf16_piece bf16_next_piece(const struct bf16_grid *g, size_t row, size_t end)
{
    return (struct bf16_piece){row, extent_min(end - row, g->images * g->width)};
}

size_t bf16_rows_behind(const struct bf16_grid *g, struct bf16_piece p, size_t wanted)
{
    size_t within = (p.row + p.rows) % g->width;
    return within ? extent_min(wanted, g->width - within) : 0;
}

static size_t laid_positions(const struct bf16_grid *g, struct bf16_piece p)
{
    return bf16_round_up(p.rows * g->width + g->slack, 32);
}

size_t bf16_lay_x(const struct bf16_grid *g, const bf16 *x, struct bf16_piece p, bf16 *to)
{
    size_t positions = laid_positions(g, p);

    if (dry_run_moves_bf16(2 * g->phases * g->phases * positions * g->ci))
        return positions * g->ci;
    p.rows += bf16_rows_behind(g, p, bf16_grid_reach(g, 0));
    for (size_t f = 0; f < g->phases * g->phases; f++) {
        struct layout l = {g->in, g->ci, g->stride, f / g->phases, f % g->phases, g->pad, g->width};
        lay_rows(&l, x, p, positions, to + f * positions * g->ci);
    }
    return positions * g->ci;
}

void bf16_lay_dz(const struct bf16_grid *g, const bf16 *dz, struct bf16_piece p, bf16 *to)
{
    struct layout l = {g->out, g->co, 1, 0, 0, g->lead, g->width};
    size_t positions = laid_positions(g, p);

    if (dry_run_moves_bf16(2 * positions * g->co))
        return;
    p.rows += bf16_rows_behind(g, p, g->lead + bf16_grid_lead(g, 0));
    lay_rows(&l, dz, p, positions, to);
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
