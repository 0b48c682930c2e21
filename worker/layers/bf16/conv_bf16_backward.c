#include "worker/kernels/bf16_vec.h"
#include "worker/layers/bf16/conv_bf16.h"
#include "worker/layers/bf16/conv_bf16_parts.h"
#include "worker/layers/bf16/conv_bf16_rows.h"
#include "worker/team/dry_run.h"

/* ---- dw */

/* What dw multiplies that with: rows of x turned to columns. */
static void bf16_turn_x(const struct bf16_grid *g, const bf16 *x, size_t rows, bf16 *tail,
                        bf16 *columns, size_t ld)
{
    if (dry_run_moves_bf16(2 * rows * g->ci))
        return;
    for (size_t row = 0; row < rows; row += 32)
        bf16_transpose(bf16_full_rows(x, g->ci, rows, row, tail), g->ci, 32, g->ci, columns + row,
                       ld);
}

/* dw of groups of fewer channels than 32 from a product of 32 by 32. */
static void conv_bf16_backward_add_small_groups(const struct bf16_grid *g, const float *block,
                                                float *dw, bool add)
{
    for (size_t i = 0; i < g->gi; i++)
        for (size_t o = 0; o < 32; o++) {
            float x = block[(o / g->gi * g->gi + i) * 32 + o];
            dw[i * g->co + o] = add ? dw[i * g->co + o] + x : x;
        }
}

struct bf16_sums {
    const struct bf16_grid *g;
    const struct bf16_scratch *s;
    size_t phase;     /* elements of x_columns between two */
    size_t positions; /* in the panels */
    float *dw;
    bool add;
};

/* Panel j of dz with rows [i0, end) of x at one tap, for a block of positions. */
static void conv_bf16_backward_sum_tap(const struct bf16_sums *w, struct bf16_tap t, size_t j,
                                       size_t i0, size_t end, size_t k0, size_t k, bool add)
{
    const struct bf16_grid *g = w->g;

    if (dry_run_products(size_max(end - i0, BF16_CHUNK), BF16_COLUMNS, k))
        return;
    const bf16 *x = w->s->x_columns + (t.fy * g->phases + t.fx) * w->phase + t.ty * g->width +
                    t.tx + k0 + bf16_base_in(g, j) * w->s->ld;
    float *dw = w->dw + bf16_tap_number(g, t) * g->gi * g->co + j * 32;
    float block[32 * 32];
    struct bf16_product p = {x, w->s->ld, w->s->block, k / 32,
                             w->s->dz_panels + (j * w->positions + k0) * BF16_COLUMNS};

    if (g->gi < BF16_CHUNK) {
        bf16_multiply(&p, 32, block, 32, false);
        conv_bf16_backward_add_small_groups(g, block, dw, add);
        return;
    }
    for (size_t i = i0; i < end; i += 32) {
        p.a = x + i * w->s->ld;
        bf16_multiply(&p, 32, dw + i * g->co, g->co, add);
    }
}

static size_t conv_bf16_backward_begin_sums(const struct bf16_sums *w)
{
    for (size_t i = 0; i < w->positions / 32 && !dry_run; i++)
        w->s->block[i] = 32 * i;
    return bf16_grid_is_large(w->g) ? BF16_LARGE_BLOCK_POSITIONS : BF16_BLOCK_POSITIONS;
}

static void conv_bf16_backward_sum_weights(const struct bf16_sums *w)
{
    size_t most = conv_bf16_backward_begin_sums(w);

    for (size_t k0 = 0; k0 < w->positions; k0 += most)
        for (size_t j = 0; j < w->g->co / 32; j++) {
            struct bf16_tap t = {0};
            do
                conv_bf16_backward_sum_tap(w, t, j, 0, w->g->gi, k0,
                                           size_min(w->positions - k0, most), w->add || k0);
            while (bf16_next_tap(w->g, &t));
        }
}

/* Rows of x or panels of dz, whichever are more, by the other, by taps: so a share reads few of the
 * more. */
static void conv_bf16_backward_sum_blocks(const struct bf16_sums *w, struct parallel_range blocks)
{
    const struct bf16_grid *g = w->g;
    size_t most = conv_bf16_backward_begin_sums(w), rows = g->gi / 32, panels = g->co / 32;
    bool by_rows = rows > panels;
    size_t inner = by_rows ? panels : rows, u = 0;

    for (size_t k0 = 0; k0 < w->positions; k0 += most, u = 0)
        for (size_t outer = 0; outer < rows * panels / inner; outer++) {
            struct bf16_tap t = {0};
            do
                for (size_t k = 0; k < inner; k++, u++)
                    if (u >= blocks.first && u < blocks.end) {
                        size_t i = 32 * (by_rows ? outer : k), j = by_rows ? k : outer;
                        conv_bf16_backward_sum_tap(w, t, j, i, i + 32, k0,
                                                   size_min(w->positions - k0, most), w->add || k0);
                    }
            while (bf16_next_tap(g, &t));
        }
}

/* Where the factors of the share's piece number `piece` are. */
static struct bf16_scratch conv_bf16_backward_factors_at(const struct bf16_grid *g,
                                                         const struct bf16_scratch *s,
                                                         const struct conv_bf16_backward *b,
                                                         int part, size_t piece)
{
    struct bf16_scratch at = *s;

    if (!b->shared)
        return at;
    struct bf16_shared shared = bf16_shared_of(g, b->images, b->share.parts);
    char *memory = (char *)b->shared + ((size_t)part * shared.pieces + piece) * shared.piece_bytes;
    at.ld = shared.ld;
    at.x_columns = (bf16 *)memory;
    at.dz_panels = (bf16 *)(memory + shared.columns_bytes);
    return at;
}

/* ---- dx */

/* Of one phase, whose taps are behind `chunks` others in the panels. dz: of the first position. */
static size_t conv_bf16_backward_data_of_phase(const struct bf16_grid *g,
                                               const struct bf16_scratch *s,
                                               const struct conv_bf16_backward *b, const bf16 *dz,
                                               struct bf16_piece piece, size_t fy, size_t fx,
                                               size_t chunks)
{
    size_t y0 = bf16_grid_lead(g, fy), x0 = bf16_grid_lead(g, fx), n = 0;
    struct bf16_place place = {g->in,
                               g->stride,
                               y0 * g->stride + fy - g->pad,
                               x0 * g->stride + fx - g->pad,
                               bf16_grid_end(g, fy) - y0,
                               bf16_grid_end(g, fx) - x0,
                               g->width};

    for (size_t ty = 0; ty <= bf16_grid_reach(g, fy); ty++)
        for (size_t tx = 0; tx <= bf16_grid_reach(g, fx); tx++)
            for (size_t i = 0; i < g->chunks_out; i++)
                s->chunk[n++] =
                    ((y0 + g->lead - ty) * g->width + x0 + g->lead - tx) * g->co + i * 32;
    bf16_find_pixels(&place, piece, s->pixel);
    bf16_multiply_rows(&(struct bf16_rows){
        .p = {dz, g->co, s->chunk, n, b->packed + chunks * BF16_CHUNK_SIZE},
        .positions = piece.rows * g->width,
        .exact = g->dz_in_place,
        .columns = g->ci,
        .panel = bf16_panel_chunks(g, CONV_DATA) * BF16_CHUNK_SIZE,
        .pixel = s->pixel,
        .to = b->dx,
        .add = b->add_dx,
        .g = g,
        .base = bf16_base_out
    });
    return n;
}

/* Rows [row, row + rows) of dx belong to a piece. */
static void conv_bf16_backward_rows_of_dx(const struct bf16_grid *g, struct bf16_piece p,
                                          size_t *row, size_t *rows)
{
    size_t line = bf16_grid_line(g, p.row, g->in, g->stride);

    *row = line * g->in;
    *rows = (bf16_grid_line(g, p.row + p.rows, g->in, g->stride) - line) * g->in;
}

static void conv_bf16_backward_data_of_piece(const struct bf16_grid *g,
                                             const struct bf16_scratch *s,
                                             const struct conv_bf16_backward *b, const bf16 *dz,
                                             struct bf16_piece piece)
{
    size_t chunks = 0, row, rows;

    conv_bf16_backward_rows_of_dx(g, piece, &row, &rows);
    if (g->phases < g->stride && !b->add_dx && !dry_run_moves_bf16(rows * g->ci))
        bf16_zero(b->dx + row * g->ci, rows * g->ci);
    for (size_t f = 0; f < g->phases * g->phases; f++)
        chunks += conv_bf16_backward_data_of_phase(g, s, b, dz, piece, f / g->phases, f % g->phases,
                                                   chunks);
    if (b->done && rows)
        b->done(row, rows, b->context);
}

static void backward_piece(const struct bf16_grid *g, const struct bf16_scratch *s,
                           const struct bf16_scratch *factors, const struct conv_bf16_backward *b,
                           struct bf16_piece piece, bool add_dw)
{
    size_t n = piece.rows * g->width, phase = bf16_lay_x(g, b->x, piece, s->x);
    const bf16 *dz = b->dz + piece.row * g->out * g->co; /* in place width is out */

    if (!g->dz_in_place) {
        bf16_lay_dz(g, b->dz, piece, s->dz);
        dz = s->dz;
    }
    for (size_t f = 0; f < g->phases * g->phases; f++)
        bf16_turn_x(g, s->x + f * phase, phase / g->ci, s->tail,
                    factors->x_columns + f * g->ci * factors->ld, factors->ld);
    bf16_pack_dz(g, dz + g->lead * (g->width + 1) * g->co, n, s->tail, factors->dz_panels);
    if (!b->shared)
        conv_bf16_backward_sum_weights(
            &(struct bf16_sums){g, s, g->ci * s->ld, bf16_round_up(n, 32), b->dw, add_dw});
    if (b->dx)
        conv_bf16_backward_data_of_piece(g, s, b, dz, piece);
}

static void backward_pieces(const struct bf16_grid *g, const struct bf16_scratch *s,
                            const struct conv_bf16_backward *b, size_t first, size_t end)
{
    size_t start = bf16_grid_row(g, first), last = bf16_grid_behind(g, end), number = 0;
    struct bf16_piece p;

    for (size_t row = start; row < last; row += p.rows) {
        struct bf16_scratch factors =
            conv_bf16_backward_factors_at(g, s, b, b->share.part, number++);
        p = bf16_next_piece(g, row, last);
        size_t line = bf16_grid_line(g, row, g->out, 1);
        size_t lines = bf16_grid_line(g, row + p.rows, g->out, 1) - line;
        if (b->ready && lines)
            b->ready(line * g->out, lines * g->out, b->context);
        backward_piece(g, s, &factors, b, p, b->add_dw || row > start);
    }
}

static void backward_in_place(const struct bf16_grid *g, const struct bf16_scratch *s,
                              const struct conv_bf16_backward *b, size_t row, size_t last)
{
    size_t step = bf16_grid_positions(g), chunks = bf16_panel_chunks(g, CONV_DATA), number = 0;
    bool add_dw = b->add_dw;

    for (; row < last; row += step, add_dw = true) {
        struct bf16_scratch factors =
            conv_bf16_backward_factors_at(g, s, b, b->share.part, number++);
        size_t rows = size_min(last - row, step);
        const bf16 *dz = b->dz + row * g->co;
        if (b->ready)
            b->ready(row, rows, b->context);
        bf16_turn_x(g, (const bf16 *)b->x + row * g->ci, rows, s->tail, factors.x_columns,
                    factors.ld);
        bf16_pack_dz(g, dz, rows, s->tail, factors.dz_panels);
        if (!b->shared)
            conv_bf16_backward_sum_weights(
                &(struct bf16_sums){g, s, 0, bf16_round_up(rows, 32), b->dw, add_dw});
        if (!b->dx)
            continue;
        for (size_t i = 0; i < chunks; i++)
            s->chunk[i] = 32 * i;
        bf16_multiply_rows(&(struct bf16_rows){
            .p = {dz, g->co, s->chunk, chunks, b->packed},
            .positions = rows,
            .exact = true,
            .columns = g->ci,
            .panel = chunks * BF16_CHUNK_SIZE,
            .to = b->dx + row * g->ci,
            .add = b->add_dx,
            .g = g,
            .base = bf16_base_out
        });
        if (b->done)
            b->done(row, rows, b->context);
    }
}

static struct bf16_scratch conv_bf16_backward_scratch_of(const struct bf16_grid *g,
                                                         const struct conv_bf16_backward *b)
{
    enum bf16_use use = b->shared ? BF16_BACKWARD_SHARED : BF16_BACKWARD;
    return bf16_scratch_of(g, use, b->scratch.memory);
}

void conv_bf16_backward(const struct conv *c, const struct conv_bf16_backward *b, size_t first,
                        size_t end)
{
    struct bf16_grid g = bf16_grid_of_share(c, b->scratch.images, b->scratch.threads);
    struct bf16_scratch s = conv_bf16_backward_scratch_of(&g, b);

    bf16_begin();
    if (bf16_grid_is_first(&g))
        bf16_backward_first(&g, &s, b, first, end);
    else if (g.x_in_place)
        backward_in_place(&g, &s, b, first * g.out, end * g.out);
    else
        backward_pieces(&g, &s, b, first, end);
    bf16_end();
}

bool conv_bf16_shares(const struct conv *c, size_t images, int threads)
{
    struct bf16_grid g = bf16_grid_of(c);
    return images <= bf16_shared_images(&g, threads);
}

/* Of the pieces of one share's lines, as its conv_bf16_backward made them. */
static void conv_bf16_backward_sum_share(const struct bf16_grid *g, const struct bf16_scratch *s,
                                         const struct conv_bf16_backward *b, int part,
                                         struct parallel_range blocks, bool *add)
{
    struct parallel_range lines =
        bf16_grid_lines(g, b->images, (struct parallel_share){part, b->share.parts});
    size_t row = g->x_in_place ? lines.first * g->out : bf16_grid_row(g, lines.first);
    size_t last = g->x_in_place ? lines.end * g->out : bf16_grid_behind(g, lines.end), n,
           number = 0;

    for (; row < last; row += n) {
        struct bf16_scratch factors = conv_bf16_backward_factors_at(g, s, b, part, number++);
        if (g->x_in_place)
            n = size_min(last - row, bf16_grid_positions(g));
        else
            n = bf16_next_piece(g, row, last).rows;
        size_t positions = bf16_round_up(g->x_in_place ? n : n * g->width, 32);
        conv_bf16_backward_sum_blocks(
            &(struct bf16_sums){g, &factors, g->ci * factors.ld, positions, b->dw, *add}, blocks);
        *add = true;
    }
}

void conv_bf16_sum_shared(const struct conv *c, const struct conv_bf16_backward *b)
{
    struct bf16_grid g = bf16_grid_of_share(c, b->scratch.images, b->scratch.threads);
    struct bf16_scratch s = conv_bf16_backward_scratch_of(&g, b);
    struct parallel_range blocks = parallel_range(conv_weights(c) / BF16_CHUNK_SIZE, b->share);
    bool add = b->add_dw;

    bf16_begin();
    for (int part = 0; part < b->share.parts; part++)
        conv_bf16_backward_sum_share(&g, &s, b, part, blocks, &add);
    bf16_end();
}
