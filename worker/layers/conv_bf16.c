#include "worker/layers/conv_bf16.h"

#include "worker/kernels/bf16_vec.h"
#include "worker/layers/conv_bf16_grid.h"
#include "worker/team/dry_run.h"

/* ---- products of positions by panels */

struct bf16_rows {
    struct bf16_product p; /* at the first position and panel */
    size_t positions;
    size_t columns, panel;     /* elements of a panel */
    struct bf16_target target; /* at the first panel; its ld is set here */
    const struct bf16_grid *g;
    size_t (*base)(const struct bf16_grid *g, size_t j);
};

/* The panel loop is outside, so that a panel stays in the first-level cache. */
static void bf16_multiply_rows(struct bf16_rows r)
{
    const bf16 *a = r.p.a;

    r.target.ld = r.columns;
    if (dry_run_products(bf16_round_up(r.positions, BF16_HALF_TILE), r.columns,
                         r.p.chunks * BF16_CHUNK))
        return;
    for (size_t j = 0; j < r.columns / BF16_COLUMNS; j++) {
        r.p.a = a + r.base(r.g, j);
        bf16_multiply_rounded(&r.p, r.positions, &r.target);
        r.p.panel += r.panel;
        r.target.to += BF16_COLUMNS;
    }
}

/* ---- panels */

size_t conv_bf16_panels(const struct conv *c, enum conv_direction direction)
{
    return (size_t)(direction == CONV_DATA ? c->window.channels : c->out_channels) / BF16_COLUMNS;
}

size_t conv_bf16_packed(const struct conv *c, enum conv_direction direction)
{
    struct bf16_grid g = bf16_grid_of(c);
    return conv_bf16_panels(c, direction) * bf16_panel_chunks(&g, direction) * BF16_CHUNK_SIZE;
}

/* 32 by 32 channels of smaller groups; zero between different groups. */
static void conv_bf16_pack_small_groups(const struct bf16_grid *g, const float *w, size_t tap,
                                        size_t j, bool transposed, bf16 *chunk)
{
    float block[32 * 32] = {0};

    for (size_t o = 0; o < 32; o++)
        for (size_t i = 0; i < g->gi; i++)
            block[(o / g->gi * g->gi + i) * 32 + o] = w[(tap * g->gi + i) * g->co + j * 32 + o];
    bf16_pack_floats(block, 32, transposed, 32, chunk);
}

/* In the order in which the weights are in memory. */
static void conv_bf16_pack_panels(const struct bf16_grid *g, enum conv_direction direction,
                                  const float *w, size_t first, size_t end, size_t size,
                                  bf16 *packed)
{
    bool back = direction == CONV_DATA;
    size_t chunks = back ? g->chunks_out : g->chunks_in, panels = end - first;
    struct bf16_tap t = {0};

    do {
        const float *at = w + bf16_tap_number(g, t) * g->gi * g->co;
        for (size_t u = 0; u < chunks * panels; u++) {
            size_t i = back ? u % chunks : u / panels, j = first + (back ? u / chunks : u % panels);
            size_t row = back ? j * 32 % g->gi : i * 32;
            size_t column = back ? bf16_base_out(g, j) + i * 32 : j * 32;
            bf16 *chunk = packed + j * size + i * BF16_CHUNK_SIZE;
            if (g->gi < BF16_CHUNK)
                conv_bf16_pack_small_groups(g, w, bf16_tap_number(g, t), j, back, chunk);
            else
                bf16_pack_floats(at + row * g->co + column, g->co, back, 32, chunk);
        }
        packed += chunks * BF16_CHUNK_SIZE;
    } while (bf16_next_tap(g, &t));
}

static void conv_bf16_pack_first_layer(const struct bf16_grid *g, const float *w, size_t j,
                                       bf16 *chunk)
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
    if (!bf16_grid_is_first(&g))
        conv_bf16_pack_panels(&g, direction, w, first, end, size, packed);
    for (size_t j = first; j < end && bf16_grid_is_first(&g); j++)
        conv_bf16_pack_first_layer(&g, w, j, packed + j * size);
}

/* The 32 rows from `row` on, of `rows` of c channels; missing ones become zeros in tail. */
static const bf16 *bf16_full_rows(const bf16 *from, size_t c, size_t rows, size_t row, bf16 *tail)
{
    if (row + 32 <= rows)
        return from + row * c;
    memcpy(tail, from + row * c, (rows - row) * c * sizeof *tail);
    bf16_zero(tail + (rows - row) * c, (32 - (rows - row)) * c);
    return tail;
}

/* Packs rows of dz as panels. tail: room for 32 rows */
static void bf16_pack_dz(const struct bf16_grid *g, const bf16 *dz, size_t rows, bf16 *tail,
                         bf16 *panels)
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

/* ---- the first layer, which reads fp32 or bf16 and has no dx */

/* A piece of images as rows per phase fy, columns of a row adjacent: (phases, positions, stride,
 * ci). Returns the elements per phase. */
static size_t conv_bf16_first_lay(const struct bf16_grid *g, const void *x, bool bf16_x,
                                  struct bf16_piece p, bf16 *to)
{
    size_t line = g->width * g->stride * g->ci, lead = g->pad * g->ci, pixels = g->in * g->ci;
    size_t size = bf16_grid_laid(g, p.rows * g->width) * g->stride * g->ci;
    size_t last = p.row + p.rows + bf16_rows_after(g, p, bf16_grid_reach(g, 0));

    if (dry_run_moves_bf16(2 * g->phases * size))
        return size;
    pixels = size_min(pixels, line - lead);
    for (size_t f = 0; f < g->phases; f++) {
        bf16 *at = to + f * size;
        bf16_zero(at, size);
        for (size_t r = p.row; r < last; r++, at += line) {
            size_t y = r % g->width * g->stride + f - g->pad;
            size_t from = (r / g->width * g->in + y) * g->in * g->ci;
            if (y < g->in && bf16_x)
                memcpy(at + lead, (const bf16 *)x + from, pixels * sizeof *at);
            else if (y < g->in)
                bf16_from_floats((const float *)x + from, pixels, at + lead);
        }
    }
    return size;
}

static void conv_bf16_first_chunks(const struct bf16_grid *g, size_t phase, size_t *chunk)
{
    for (size_t ky = 0; ky < g->kernel; ky++)
        for (size_t i = 0; i < bf16_row_chunks(g); i++)
            *chunk++ =
                ky % g->stride * phase + ky / g->stride * g->width * g->stride * g->ci + i * 32;
}

static void conv_bf16_first_turn(const struct bf16_grid *g, const struct bf16_scratch *s,
                                 size_t phase, size_t n)
{
    if (dry_run_moves_bf16(2 * g->phases * g->stride * g->ci * n))
        return;
    for (size_t f = 0; f < g->phases; f++)
        for (size_t i = 0; i < g->stride * g->ci; i++) {
            const bf16 *from = s->x + f * phase + i;
            bf16 *to = s->x_columns + (f * g->stride * g->ci + i) * s->ld;
            for (size_t q = 0; q < n; q++)
                to[q] = from[q * g->stride * g->ci];
        }
}

static void conv_bf16_first_rows(const struct bf16_grid *g, const struct bf16_scratch *s, size_t k0,
                                 size_t k, bf16 *to, size_t ld)
{
    size_t rows = g->kernel * g->kernel * g->ci;

    if (dry_run_moves_bf16(2 * rows * k))
        return;
    for (size_t r = 0; r < bf16_first_layer_rows(g); r++, to += ld) {
        size_t c = r % g->ci, kx = r / g->ci % g->kernel, ky = r / g->ci / g->kernel;
        size_t column = (ky % g->stride * g->stride + kx % g->stride) * g->ci + c;
        if (r < rows)
            memcpy(to,
                   s->x_columns + column * s->ld + ky / g->stride * g->width + kx / g->stride + k0,
                   k * sizeof *to);
        else
            bf16_zero(to, k);
    }
}

static void conv_bf16_first_lay_dz(const struct bf16_grid *g, const bf16 *dz, struct bf16_piece p,
                                   size_t k0, size_t k, bf16 *to)
{
    if (dry_run_moves_bf16(2 * k * g->co))
        return;
    for (size_t q = k0; q < k0 + k; q++, to += g->co) {
        size_t row = p.row + q / g->width, x = q % g->width, y = row % g->width;
        if (row < p.row + p.rows && y < g->out && x < g->out)
            memcpy(to, dz + ((row / g->width * g->out + y) * g->out + x) * g->co,
                   g->co * sizeof *to);
        else
            bf16_zero(to, g->co);
    }
}

static void conv_bf16_first_sum(const struct bf16_grid *g, const struct bf16_scratch *s,
                                const struct conv_bf16_backward *b, struct bf16_piece p, bool add)
{
    size_t phase = conv_bf16_first_lay(g, b->x, b->bf16_x, p, s->x),
           n = bf16_round_up(p.rows * g->width, 32);

    conv_bf16_first_turn(g, s, phase, bf16_grid_laid(g, n) - BF16_CHUNK);
    for (size_t i = 0; i < size_min(n, BF16_BLOCK_POSITIONS) / 32 && !dry_run; i++)
        s->block[i] = 32 * i;
    for (size_t k0 = 0; k0 < n; k0 += BF16_BLOCK_POSITIONS) {
        size_t k = size_min(n - k0, BF16_BLOCK_POSITIONS);
        conv_bf16_first_rows(g, s, k0, k, s->left, BF16_LEFT_LD);
        conv_bf16_first_lay_dz(g, b->dz, p, k0, k, s->dz);
        bf16_pack_dz(g, s->dz, k, s->tail, s->dz_panels);
        if (dry_run_products(bf16_first_layer_rows(g), g->co, k))
            continue;
        for (size_t j = 0; j < g->co / 32; j++)
            for (size_t r = 0; r < bf16_first_layer_rows(g); r += 32)
                bf16_multiply(&(struct bf16_product){s->left + r * BF16_LEFT_LD, BF16_LEFT_LD,
                                                     s->block, k / 32,
                                                     s->dz_panels + j * k * BF16_COLUMNS, 0},
                              32, s->dw + r * g->co + j * 32, g->co, add || k0);
    }
}

static void bf16_backward_first(const struct bf16_grid *g, const struct bf16_scratch *s,
                                const struct conv_bf16_backward *b, size_t first, size_t end)
{
    size_t weights = g->kernel * g->kernel * g->ci * g->co;
    size_t start = bf16_grid_row(g, first), last = bf16_grid_row(g, end);
    struct bf16_piece p;

    for (size_t row = start; row < last; row += p.rows) {
        p = bf16_next_piece(g, row, size_min(last, (row / g->width + 1) * g->width));
        size_t line = bf16_grid_line(g, row, g->out, 1);
        size_t lines = bf16_grid_line(g, row + p.rows, g->out, 1) - line;
        if (lines)
            conv_call_hook_rows(b->ready, line * g->out, lines * g->out, g->co, b->context);
        conv_bf16_first_sum(g, s, b, p, row > start);
    }
    for (size_t i = 0; i < weights && !dry_run; i++)
        b->dw[i] = b->add_dw ? b->dw[i] + s->dw[i] : s->dw[i];
}

/* ---- forward */

bool conv_bf16_takes(const struct conv *c)
{
    struct bf16_grid g = bf16_grid_of(c);

    if (g.co % BF16_COLUMNS || (g.ci % BF16_CHUNK && !(bf16_grid_is_first(&g) && c->groups == 1)))
        return false;
    return c->groups == 1 || (g.gi == g.go && (g.gi % BF16_CHUNK == 0 || BF16_CHUNK % g.gi == 0));
}

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
                                       size_t last, conv_rows *done, void *context)
{
    size_t step = bf16_grid_positions(g), chunks = bf16_panel_chunks(g, CONV_FORWARD);

    conv_bf16_forward_chunks(g, 0, s->chunk);
    for (; row < last; row += step) {
        size_t rows = size_min(last - row, step);
        bf16_multiply_rows((struct bf16_rows){
            .p = {x + row * g->ci, g->ci, s->chunk, chunks, packed, 0},
            .positions = rows,
            .columns = g->co,
            .panel = chunks * BF16_CHUNK_SIZE,
            .target.to = z + row * g->co,
            .target.exact = true,
            .g = g,
            .base = bf16_base_in
        });
        conv_call_hook_rows(done, row, rows, g->co, context);
    }
}

static void conv_bf16_forward_piece(const struct bf16_grid *g, const struct bf16_scratch *s,
                                    const bf16 *packed, const void *x, bool bf16_x, bf16 *z,
                                    struct bf16_piece piece)
{
    bool first = bf16_grid_is_first(g);
    size_t chunks = bf16_panel_chunks(g, CONV_FORWARD);
    struct bf16_place place = {g->out, 1, 0, 0, g->out, g->out, g->width};

    if (first)
        conv_bf16_first_chunks(g, conv_bf16_first_lay(g, x, bf16_x, piece, s->x), s->chunk);
    else
        conv_bf16_forward_chunks(g, bf16_lay_x(g, x, piece, s->x), s->chunk);
    bf16_find_pixels(&place, piece, s->pixel);
    bf16_multiply_rows((struct bf16_rows){
        .p = {s->x, first ? g->stride * g->ci : g->ci, s->chunk, chunks, packed,
              first && bf16_row_chunks(g) == 1 ? bf16_round_up(g->kernel * g->ci, 2) : 0},
        .positions = piece.rows * g->width,
        .columns = g->co,
        .panel = chunks * BF16_CHUNK_SIZE,
        .target.to = z,
        .target.pixel = s->pixel,
        .g = g,
        .base = bf16_base_in
    });
}

static void conv_bf16_forward_pieces(const struct bf16_grid *g, const struct bf16_scratch *s,
                                     const bf16 *packed, const void *x, bf16 *z, size_t first,
                                     size_t end, conv_rows *done, void *context, bool bf16_x)
{
    size_t last = bf16_grid_end_of_lines(g, end);
    struct bf16_piece p;

    for (size_t row = bf16_grid_row(g, first); row < last; row += p.rows) {
        p = bf16_next_piece(g, row, last);
        conv_bf16_forward_piece(g, s, packed, x, bf16_x, z, p);
        size_t line = bf16_grid_line(g, row, g->out, 1),
               after = bf16_grid_line(g, row + p.rows, g->out, 1);
        if (after > line)
            conv_call_hook_rows(done, line * g->out, (after - line) * g->out, g->co, context);
    }
}

void conv_bf16_forward(const struct conv *c, const bf16 *packed, const void *x, bf16 *z,
                       size_t first, size_t end, struct conv_bf16_scratch scratch, conv_rows *done,
                       void *context, bool bf16_x)
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

/* ---- backward */

/* ---- dw */

static void bf16_turn_x(const struct bf16_grid *g, const bf16 *x, size_t rows, bf16 *tail,
                        bf16 *columns, size_t ld)
{
    if (dry_run_moves_bf16(2 * rows * g->ci))
        return;
    for (size_t row = 0; row < rows; row += 32)
        bf16_transpose(bf16_full_rows(x, g->ci, rows, row, tail), g->ci, 32, g->ci, columns + row,
                       ld);
}

static void conv_bf16_backward_add_small_groups(const struct bf16_grid *g, const float *block,
                                                float *dw, bool add)
{
    for (size_t i = 0; i < g->gi; i++)
        for (size_t o = 0; o < 32; o++) {
            float x = block[(o / g->gi * g->gi + i) * 32 + o];
            dw[i * g->co + o] = add ? dw[i * g->co + o] + x : x;
        }
}

/* dw of taps that only see padding */
static void conv_bf16_backward_clear_unseen(const struct bf16_grid *g, float *dw)
{
    size_t n = g->gi * g->co, end = g->tap_first + g->kernel;

    for (size_t t = 0; t < g->weights_side * g->weights_side; t++) {
        size_t y = t / g->weights_side, x = t % g->weights_side;
        if (size_min(y, x) < g->tap_first || size_max(y, x) >= end)
            if (!dry_run_moves(n))
                memset(dw + t * n, 0, n * sizeof *dw);
    }
}

struct bf16_sums {
    const struct bf16_grid *g;
    const struct bf16_scratch *s;
    size_t phase;     /* elements of x_columns per phase */
    size_t positions; /* in the panels */
    float *dw;
    bool add;
};

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
    struct bf16_product p = {
        x, w->s->ld, w->s->block, k / 32, w->s->dz_panels + (j * w->positions + k0) * BF16_COLUMNS,
        0};

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
    size_t max = conv_bf16_backward_begin_sums(w);

    for (size_t k0 = 0; k0 < w->positions; k0 += max)
        for (size_t j = 0; j < w->g->co / 32; j++) {
            struct bf16_tap t = {0};
            do
                conv_bf16_backward_sum_tap(w, t, j, 0, w->g->gi, k0,
                                           size_min(w->positions - k0, max), w->add || k0);
            while (bf16_next_tap(w->g, &t));
        }
}

/* The larger of x's rows and dz's panels is the outer loop, so that a share reads few of them. */
static void conv_bf16_backward_sum_blocks(const struct bf16_sums *w, struct parallel_range blocks)
{
    const struct bf16_grid *g = w->g;
    size_t max = conv_bf16_backward_begin_sums(w), rows = g->gi / 32, panels = g->co / 32;
    bool by_rows = rows > panels;
    size_t inner = by_rows ? panels : rows, u = 0;

    for (size_t k0 = 0; k0 < w->positions; k0 += max, u = 0)
        for (size_t outer = 0; outer < rows * panels / inner; outer++) {
            struct bf16_tap t = {0};
            do
                for (size_t k = 0; k < inner; k++, u++)
                    if (u >= blocks.first && u < blocks.end) {
                        size_t i = 32 * (by_rows ? outer : k), j = by_rows ? k : outer;
                        conv_bf16_backward_sum_tap(w, t, j, i, i + 32, k0,
                                                   size_min(w->positions - k0, max), w->add || k0);
                    }
            while (bf16_next_tap(g, &t));
        }
}

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

/* dx of one phase, whose taps follow `chunks` others in the panels. dz: of the first position. */
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
    bf16_multiply_rows((struct bf16_rows){
        .p = {dz, g->co, s->chunk, n, b->packed + chunks * BF16_CHUNK_SIZE, 0},
        .positions = piece.rows * g->width,
        .columns = g->ci,
        .panel = bf16_panel_chunks(g, CONV_DATA) * BF16_CHUNK_SIZE,
        .target.to = b->dx,
        .target.pixel = s->pixel,
        .target.add = b->add_dx,
        .target.exact = g->dz_in_place,
        .g = g,
        .base = bf16_base_out
    });
    return n;
}

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
    if (rows)
        conv_call_hook_rows(b->done, row, rows, g->ci, b->context);
}

static void conv_bf16_backward_weights_of_piece(const struct bf16_grid *g,
                                                const struct bf16_scratch *s,
                                                const struct bf16_scratch *factors,
                                                const struct conv_bf16_backward *b, const bf16 *dz,
                                                struct bf16_piece piece, bool add_dw)
{
    size_t n = piece.rows * g->width, phase = bf16_lay_x(g, b->x, piece, s->x);

    for (size_t f = 0; f < g->phases * g->phases; f++)
        bf16_turn_x(g, s->x + f * phase, phase / g->ci, s->tail,
                    factors->x_columns + f * g->ci * factors->ld, factors->ld);
    bf16_pack_dz(g, dz + g->lead * (g->width + 1) * g->co, n, s->tail, factors->dz_panels);
    if (!b->shared)
        conv_bf16_backward_sum_weights(
            &(struct bf16_sums){g, s, g->ci * s->ld, bf16_round_up(n, 32), b->dw, add_dw});
}

static void conv_bf16_backward_piece(const struct bf16_grid *g, const struct bf16_scratch *s,
                                     const struct bf16_scratch *factors,
                                     const struct conv_bf16_backward *b, struct bf16_piece piece,
                                     bool add_dw)
{
    const bf16 *dz = b->dz + piece.row * g->out * g->co; /* if in place, width is out */

    if (!g->dz_in_place) {
        bf16_lay_dz(g, b->dz, piece, s->dz);
        dz = s->dz;
    }
    if (b->dw)
        conv_bf16_backward_weights_of_piece(g, s, factors, b, dz, piece, add_dw);
    if (b->dx)
        conv_bf16_backward_data_of_piece(g, s, b, dz, piece);
}

static void conv_bf16_backward_pieces(const struct bf16_grid *g, const struct bf16_scratch *s,
                                      const struct conv_bf16_backward *b, size_t first, size_t end)
{
    size_t start = bf16_grid_row(g, first), last = bf16_grid_end_of_lines(g, end), number = 0;
    struct bf16_piece p;

    for (size_t row = start; row < last; row += p.rows) {
        struct bf16_scratch factors =
            conv_bf16_backward_factors_at(g, s, b, b->share.part, number++);
        p = bf16_next_piece(g, row, last);
        size_t line = bf16_grid_line(g, row, g->out, 1);
        size_t lines = bf16_grid_line(g, row + p.rows, g->out, 1) - line;
        if (lines)
            conv_call_hook_rows(b->ready, line * g->out, lines * g->out, g->co, b->context);
        conv_bf16_backward_piece(g, s, &factors, b, p, b->add_dw || row > start);
    }
}

/* dw of rows of x and dz that are not laid out */
static void conv_bf16_backward_weights_in_place(const struct bf16_grid *g,
                                                const struct bf16_scratch *s,
                                                const struct conv_bf16_backward *b, size_t row,
                                                size_t rows, size_t number, bool add_dw)
{
    struct bf16_scratch factors = conv_bf16_backward_factors_at(g, s, b, b->share.part, number);

    bf16_turn_x(g, (const bf16 *)b->x + row * g->ci, rows, s->tail, factors.x_columns, factors.ld);
    bf16_pack_dz(g, b->dz + row * g->co, rows, s->tail, factors.dz_panels);
    if (!b->shared)
        conv_bf16_backward_sum_weights(
            &(struct bf16_sums){g, s, 0, bf16_round_up(rows, 32), b->dw, add_dw});
}

static void conv_bf16_backward_in_place(const struct bf16_grid *g, const struct bf16_scratch *s,
                                        const struct conv_bf16_backward *b, size_t row, size_t last)
{
    size_t step = bf16_grid_positions(g), chunks = bf16_panel_chunks(g, CONV_DATA), number = 0;
    bool add_dw = b->add_dw;

    for (; row < last; row += step, add_dw = true) {
        size_t rows = size_min(last - row, step);
        const bf16 *dz = b->dz + row * g->co;
        conv_call_hook_rows(b->ready, row, rows, g->co, b->context);
        if (b->dw)
            conv_bf16_backward_weights_in_place(g, s, b, row, rows, number++, add_dw);
        if (!b->dx)
            continue;
        for (size_t i = 0; i < chunks; i++)
            s->chunk[i] = 32 * i;
        bf16_multiply_rows((struct bf16_rows){
            .p = {dz, g->co, s->chunk, chunks, b->packed, 0},
            .positions = rows,
            .columns = g->ci,
            .panel = chunks * BF16_CHUNK_SIZE,
            .target.to = b->dx + row * g->ci,
            .target.add = b->add_dx,
            .target.exact = true,
            .g = g,
            .base = bf16_base_out
        });
        conv_call_hook_rows(b->done, row, rows, g->ci, b->context);
    }
}

static struct bf16_scratch conv_bf16_backward_scratch_of(const struct bf16_grid *g,
                                                         const struct conv_bf16_backward *b)
{
    enum bf16_use use = b->shared || !b->dw ? BF16_BACKWARD_SHARED : BF16_BACKWARD;
    return bf16_scratch_of(g, use, b->scratch.memory);
}

void conv_bf16_backward(const struct conv *c, const struct conv_bf16_backward *b, size_t first,
                        size_t end)
{
    struct bf16_grid g = bf16_grid_of_share(c, b->scratch.images, b->scratch.threads);
    struct bf16_scratch s = conv_bf16_backward_scratch_of(&g, b);

    if (b->dw && !b->add_dw && !b->shared)
        conv_bf16_backward_clear_unseen(&g, b->dw);
    bf16_begin();
    if (bf16_grid_is_first(&g))
        bf16_backward_first(&g, &s, b, first, end);
    else if (g.x_in_place)
        conv_bf16_backward_in_place(&g, &s, b, first * g.out, end * g.out);
    else
        conv_bf16_backward_pieces(&g, &s, b, first, end);
    bf16_end();
}

bool conv_bf16_shares(const struct conv *c, size_t images, int threads)
{
    struct bf16_grid g = bf16_grid_of(c);
    return images <= bf16_shared_images(&g, threads);
}

static void conv_bf16_backward_sum_share(const struct bf16_grid *g, const struct bf16_scratch *s,
                                         const struct conv_bf16_backward *b, int part,
                                         struct parallel_range blocks, bool *add)
{
    struct parallel_range lines =
        bf16_grid_lines(g, b->images, (struct parallel_share){part, b->share.parts});
    size_t row = g->x_in_place ? lines.first * g->out : bf16_grid_row(g, lines.first);
    size_t last = g->x_in_place ? lines.end * g->out : bf16_grid_end_of_lines(g, lines.end), n,
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
    struct parallel_range blocks = parallel_range(bf16_grid_dw_blocks(&g), b->share);
    bool add = b->add_dw;

    if (!add && b->share.part == 0)
        conv_bf16_backward_clear_unseen(&g, b->dw);
    bf16_begin();
    for (int part = 0; part < b->share.parts; part++)
        conv_bf16_backward_sum_share(&g, &s, b, part, blocks, &add);
    bf16_end();
}
