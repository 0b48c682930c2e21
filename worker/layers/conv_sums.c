#include "worker/layers/conv_sums.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/strassen.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/window.h"
#include "worker/layers/conv_pixel.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

enum { BLOCK_FLOATS = 32 * 1024, BLOCK_K = 256, GATHERED_ROWS = 256 };
enum { WHOLE_FLOATS = 256 * 1024, SMALL_FLOATS = 64 * 1024, MANY_ROWS = 1024 };

struct dw_block {
    int tap;                  /* ky * kernel + kx; -1: all that see pixels */
    struct parallel_block at; /* of the tap's (c_in, c_out) weights */
    size_t rows, work;        /* per row */
};

struct sums_to {
    float *to;
    size_t ld;
    bool add;
};

bool conv_may_sum_whole(const struct conv *c)
{
    size_t tile = conv_reads_in_place(c) ? 0 : conv_tile_floats(c, false);
    return conv_weights(c) + tile <= WHOLE_FLOATS + SMALL_FLOATS / 4;
}

bool conv_sums_whole(const struct conv_part *part)
{
    const struct conv *c = part->c;
    size_t rows = (size_t)part->images * conv_pixels_out(c) / (size_t)part->share.parts;
    return conv_may_sum_whole(c) && (conv_weights(c) <= SMALL_FLOATS || rows >= MANY_ROWS);
}

static struct dw_block conv_sums_block_at(const struct conv_blocks *s, size_t i)
{
    size_t ci = (size_t)s->part.c->window.channels, co = (size_t)s->part.c->out_channels;
    size_t units = (co + s->n_unit - 1) / s->n_unit;
    int taps = s->taps;

    if (s->whole)
        return (struct dw_block){
            -1, {0, conv_matrix_rows(s->part.c), 0, co},
             s->rows, 1
        };
    size_t n = i % s->n_parts, k = i / s->n_parts % s->k_parts;
    int t = (int)(i / s->n_parts / s->k_parts);
    int tap = (s->first_tap + t / taps) * s->part.c->window.kernel + s->first_tap + t % taps;
    size_t row = ci * k / s->k_parts, row_end = ci * (k + 1) / s->k_parts;
    size_t column = units * n / s->n_parts * s->n_unit;
    size_t column_end = size_min(units * (n + 1) / s->n_parts * s->n_unit, co);
    size_t hits = s->pixel ? conv_pixel_hits(s->part.c, tap) : 1;
    return (struct dw_block){
        tap,
        {row, row_end - row, column, column_end - column},
        s->rows * hits,
        (row_end - row) * (column_end - column)
    };
}

static size_t conv_sums_all_work(const struct conv_blocks *s)
{
    size_t work = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct dw_block b = conv_sums_block_at(s, i);
        work += b.rows * b.work;
    }
    return work;
}

struct conv_blocks conv_blocks_of(const struct conv_part *part, size_t own_floats)
{
    const struct conv *c = part->c;
    const struct window *w = &c->window;
    size_t ci = (size_t)w->channels, co = (size_t)c->out_channels;
    struct conv_blocks s = {.part = *part,
                            .rows = (size_t)part->images * conv_pixels_out(c),
                            .pixel = conv_part_by_pixel(part),
                            .single = conv_part_is_single(part),
                            .first_tap = w->tap_first,
                            .taps = window_taps(w),
                            .n_unit = conv_uses_tile(c, co) ? tile_columns() : 1,
                            .own_floats = own_floats};

    s.whole = !s.pixel && (s.single || conv_sums_whole(part));
    s.k_parts = (ci + BLOCK_K - 1) / BLOCK_K;
    size_t k = (ci + s.k_parts - 1) / s.k_parts, n = BLOCK_FLOATS / k / s.n_unit * s.n_unit;
    n = n ? n : s.n_unit;
    s.n_parts = (co + n - 1) / n;
    if (s.single)
        s.k_parts = s.n_parts = 1;
    if (s.pixel)
        s.rows = (size_t)part->images;
    s.count = s.whole ? 1 : (size_t)(s.taps * s.taps) * s.k_parts * s.n_parts;
    s.work = conv_sums_all_work(&s);
    return s;
}

/* A thread's rows of a block: those whose work begins in its range of all work. */
static struct parallel_range conv_sums_rows_of(const struct dw_block *b, size_t before,
                                               struct parallel_range mine)
{
    struct parallel_range r = {0, 0};

    if (mine.first > before)
        r.first = size_min((mine.first - before + b->work - 1) / b->work, b->rows);
    if (mine.end > before)
        r.end = size_min((mine.end - before + b->work - 1) / b->work, b->rows);
    return r;
}

static void conv_sums_gather_tap(const struct window *w, const float *x, size_t row, size_t rows,
                                 int tap, size_t channel, size_t channels, float *col)
{
    size_t c = (size_t)w->channels, out = (size_t)w->out, in = (size_t)w->in;
    double piece = trace_begin();

    if (dry_run_moves(2 * rows * channels))
        return;
    for (size_t r = row; r < row + rows; r++, col += channels) {
        size_t pixel = r % (out * out), image = r / (out * out);
        int y = (int)(pixel / out) * w->stride - w->pad + tap / w->kernel;
        int x0 = (int)(pixel % out) * w->stride - w->pad + tap % w->kernel;
        if (y < 0 || y >= w->in || x0 < 0 || x0 >= w->in)
            memset(col, 0, channels * sizeof *col);
        else
            memcpy(col, x + ((image * in + (size_t)y) * in + (size_t)x0) * c + channel,
                   channels * sizeof *col);
    }
    trace_part(piece, TRACE_IM2COL);
}

static void conv_sums_add_products(const struct conv *c, size_t rows, const float *col, size_t ld,
                                   const struct parallel_block *at, const float *dz,
                                   const struct sums_to *to)
{
    size_t n = (size_t)c->out_channels;
    struct tile_matrix b = {dz + at->column, n, false, false};

    if (conv_uses_tile(c, n))
        tile_gemm_transposed(at->rows, at->columns, rows, col, ld, &b, to->to, to->ld, to->add);
    else
        gemm_tn(at->rows, at->columns, rows, col, ld, dz + at->column, n, to->to, to->ld, to->add);
}

/* A single thread's rows are all, and it sums some images at a time. */
static void sum_pixels(const struct conv_blocks *s, const struct conv_backward *b,
                       const struct dw_block *block, struct parallel_range rows, struct sums_to to)
{
    const struct conv *c = s->part.c;
    size_t in = conv_pixels_in(c) * (size_t)c->window.channels;
    size_t out = conv_pixels_out(c) * (size_t)c->out_channels;
    size_t step = s->single ? CONV_PIXEL_IMAGES_AT_ONCE : s->rows;

    for (size_t i = 0; i < s->rows; i += step) {
        size_t images = size_min(s->rows - i, step);
        if (s->single)
            rows = (struct parallel_range){0, block->rows / s->rows * images};
        to.add = conv_pixel_weights_part(c, b->x + i * in, b->dz + i * out, block->tap, rows,
                                         images, block->at, to.to, to.ld, to.add);
    }
}

static void sum_block(const struct conv_blocks *s, const struct conv_backward *b,
                      const struct dw_block *block, struct parallel_range rows, struct sums_to to,
                      float *col)
{
    const struct conv *c = s->part.c;
    size_t n = (size_t)c->out_channels, ci = (size_t)c->window.channels;
    size_t step = conv_reads_in_place(c) ? rows.end - rows.first : GATHERED_ROWS;

    if (s->pixel) {
        sum_pixels(s, b, block, rows, to);
        return;
    }
    for (size_t row = rows.first; row < rows.end; row += step, to.add = true) {
        size_t count = size_min(rows.end - row, step);
        const float *from = b->x + row * ci + block->at.row, *dz = b->dz + row * n;
        size_t ld = ci;
        if (!conv_reads_in_place(c)) {
            ld = block->at.rows;
            from = col;
            conv_sums_gather_tap(&c->window, b->x, row, count, block->tap, block->at.row, ld, col);
        }
        conv_sums_add_products(c, count, from, ld, &block->at, dz, &to);
    }
}

/* ---- dw as one block: each piece of the rows has its own sums */

static size_t conv_sums_max_grains(const struct conv *c)
{
    return conv_weights(c) <= SMALL_FLOATS ? 8 : 1;
}

size_t conv_sums_whole_floats(const struct conv *c)
{
    return (size_t)parallel_pieces(conv_sums_max_grains(c)) * conv_weights(c);
}

/* Other threads may write these while it computes dx, so they are not in its work space. */
static float *sums_at(const struct conv_blocks *s, int thread)
{
    return s->part.memory->own[thread] + s->own_floats;
}

static size_t conv_sums_whole_tile(const struct conv_blocks *s)
{
    const struct conv *c = s->part.c;
    size_t columns = size_max(conv_columns(&c->window), (size_t)c->out_channels);
    return conv_part_tile_rows(&s->part, columns);
}

static size_t conv_sums_whole_grains(const struct conv_blocks *s)
{
    return size_min(s->rows / (size_t)s->part.share.parts / conv_sums_whole_tile(s),
                    conv_sums_max_grains(s->part.c));
}

struct sums {
    const struct conv_blocks *s;
    const struct conv_backward *b;
    const struct conv_sums_data *data;
    struct parallel_range rows;
    bool first;
    float *col; /* of the working thread */
};

/* Adds up dx from the im2col matrix dz W^T of some rows. */
static void sums_scatter(const struct sums *w, size_t row, size_t rows)
{
    const struct conv *c = w->s->part.c;
    struct conv_runs runs = conv_weight_runs(c);
    size_t k = conv_columns(&c->window), n = (size_t)c->out_channels;
    const float *dz = w->b->dz + row * n;

    for (size_t i = 0; i < runs.count; i++) {
        const float *weights = w->data->weights + (runs.first + i * runs.step) * n;
        struct tile_matrix b = {weights, n, true, w->data->packed};
        float *to = w->col + i * runs.length;
        if (conv_uses_tile(c, runs.length))
            tile_gemm(rows, runs.length, n, dz, n, &b, to, k, false);
        else
            gemm_nt(rows, runs.length, n, dz, n, weights, n, to, k, false);
    }
    col2im(&c->window, w->col, row, rows, w->b->dx);
}

static void sum_rows(const struct sums *w, struct parallel_range rows, struct sums_to to)
{
    const struct conv *c = w->s->part.c;
    const struct conv_backward *b = w->b;
    struct conv_runs runs = conv_weight_runs(c);
    size_t k = conv_columns(&c->window), n = (size_t)c->out_channels;
    size_t tile = conv_sums_whole_tile(w->s);

    for (size_t row = rows.first; row < rows.end; row += tile, to.add = true) {
        size_t count = size_min(rows.end - row, tile);
        const float *from = conv_reads_in_place(c) ? b->x + row * k : w->col;
        if (w->s->single || w->data || !b->dx)
            conv_call_hook_rows(b->ready, row, count, n, b->context);
        if (!conv_reads_in_place(c))
            im2col(&c->window, b->x, row, count, w->col);
        if (conv_halves(&w->s->part))
            strassen_gemm_transposed(k, n, count, from, k, b->dz + row * n, n, to.to, n, to.add,
                                     w->col);
        for (size_t i = 0; !conv_halves(&w->s->part) && i < runs.count; i++) {
            struct parallel_block at = {0, runs.length, 0, n};
            struct sums_to part = {to.to + (runs.first + i * runs.step) * n, n, to.add};
            conv_sums_add_products(c, count, from + i * runs.length, k, &at, b->dz + row * n,
                                   &part);
        }
        if (w->data && w->data->product)
            conv_product_block(w->data->product,
                               &(struct parallel_block){row, count, 0, w->data->product->channels});
        else if (w->data)
            sums_scatter(w, row, count);
    }
}

static void conv_sums_whole_piece(const struct parallel_piece *piece, void *context)
{
    const struct sums *w = context;
    const struct conv *c = w->s->part.c;
    struct parallel_range rows =
        parallel_range(w->rows.end - w->rows.first, parallel_piece_share(piece));
    struct sums_to to = {w->b->dw, 0, w->b->add_dw || !w->first};

    if (!w->s->single)
        to = (struct sums_to){
            sums_at(w->s, piece->home.part) + (size_t)piece->number * conv_weights(c), 0, false};
    if (!to.add && window_taps(&c->window) < c->window.kernel && !dry_run)
        memset(to.to, 0, conv_weights(c) * sizeof *to.to);
    rows = (struct parallel_range){w->rows.first + rows.first, w->rows.first + rows.end};
    sum_rows(w, rows, to);
}

void conv_sum_whole(const struct conv_blocks *s, const struct conv_backward *b,
                    struct parallel_range rows, bool first, const struct conv_sums_data *data)
{
    struct sums w = {s, b, data, rows, first, conv_part_own(&s->part)};

    parallel_take(s->part.share, conv_sums_whole_grains(s), conv_sums_whole_piece, &w);
}

static void conv_sums_add_rows(float *to, const float *from, size_t n, bool add)
{
    if (dry_run_moves((add ? 3 : 2) * n))
        return;
    for (size_t i = 0; i < n; i++)
        to[i] = add ? to[i] + from[i] : from[i];
}

static void conv_sums_add_whole(const struct conv_blocks *s, const struct conv_backward *b)
{
    size_t n = (size_t)s->part.c->out_channels;
    struct parallel_share share = s->part.share;
    struct parallel_range mine = parallel_range(conv_matrix_rows(s->part.c), share);
    int pieces = parallel_pieces(conv_sums_whole_grains(s));
    bool add = b->add_dw;

    for (int i = 0; i < share.parts * pieces; i++) {
        struct parallel_share home = {i / pieces, share.parts};
        struct parallel_piece piece = parallel_piece(home, i % pieces, pieces);
        if (parallel_is_empty(s->rows, parallel_piece_share(&piece)))
            continue;
        const float *from = sums_at(s, home.part) + (size_t)piece.number * conv_weights(s->part.c);
        conv_sums_add_rows(b->dw + mine.first * n, from + mine.first * n,
                           (mine.end - mine.first) * n, add);
        add = true;
    }
}

/* ---- dw in blocks */

/* A thread's own sums of a shared block: slot of the one its range begins in, or ends in. */
static float *conv_sums_own(size_t before, struct parallel_range mine, float *own)
{
    return own + (mine.first >= before ? 0 : BLOCK_FLOATS);
}

static float *conv_sums_weights_at(const struct conv *c, const struct dw_block *b, float *dw)
{
    size_t ci = (size_t)c->window.channels, co = (size_t)c->out_channels;
    size_t tap = b->tap < 0 ? 0 : (size_t)b->tap;
    return dw + (tap * ci + b->at.row) * co + b->at.column;
}

static void conv_sums_clear_unseen(const struct conv *c, float *dw, struct parallel_share share)
{
    const struct window *w = &c->window;
    size_t floats = (size_t)w->channels * (size_t)c->out_channels;
    struct parallel_range mine = parallel_range(floats, share);

    for (int t = 0; t < w->kernel * w->kernel && !dry_run; t++) {
        int y = t / w->kernel, x = t % w->kernel;
        if (y < w->tap_first || y >= w->tap_end || x < w->tap_first || x >= w->tap_end)
            memset(dw + (size_t)t * floats + mine.first, 0, (mine.end - mine.first) * sizeof *dw);
    }
}

/* A share's rows of a block, directly to dw if those are all rows. col: of the working thread. */
static void sum_rows_of_block(const struct conv_blocks *s, const struct conv_backward *b,
                              const struct dw_block *block, size_t before,
                              struct parallel_range share, float *own, float *col)
{
    struct parallel_range rows = conv_sums_rows_of(block, before, share);
    struct sums_to to = {conv_sums_weights_at(s->part.c, block, b->dw),
                         (size_t)s->part.c->out_channels, b->add_dw};

    if (rows.first > 0 || rows.end < block->rows)
        to = (struct sums_to){conv_sums_own(before, share, own), block->at.columns, false};
    if (rows.first < rows.end)
        sum_block(s, b, block, rows, to, col);
}

/* The blocks that overlap a range of the work; *before: work before the first one. */
static struct parallel_range conv_sums_blocks_of(const struct conv_blocks *s,
                                                 struct parallel_range work, size_t *before)
{
    struct parallel_range of = {0, 0};
    size_t at = 0;

    for (; of.end < s->count && at < work.end; of.end++) {
        struct dw_block block = conv_sums_block_at(s, of.end);
        size_t after = at + block.rows * block.work;
        if (after <= work.first) {
            of.first = of.end + 1;
            *before = after;
        }
        at = after;
    }
    return of;
}

static void conv_sums_blocks_piece(const struct parallel_piece *piece, void *context)
{
    const struct sums *w = context;
    struct parallel_range work = parallel_range(w->s->work, piece->home);
    size_t before = 0;
    struct parallel_range all = conv_sums_blocks_of(w->s, work, &before);
    struct parallel_range some = parallel_range(all.end - all.first, piece->of);

    for (size_t i = 0; i < some.end; i++) {
        struct dw_block block = conv_sums_block_at(w->s, all.first + i);
        if (i >= some.first)
            sum_rows_of_block(w->s, w->b, &block, before, work, sums_at(w->s, piece->home.part),
                              w->col);
        before += block.rows * block.work;
    }
}

void conv_sum_blocks(const struct conv_blocks *s, const struct conv_backward *b)
{
    struct parallel_share share = s->part.share;
    struct sums w = {.s = s, .b = b, .col = conv_part_own(&s->part)};

    if (!b->add_dw)
        conv_sums_clear_unseen(s->part.c, b->dw, share);
    parallel_take(share, s->count / (size_t)share.parts, conv_sums_blocks_piece, &w);
}

static void conv_sums_add_block(const struct conv_blocks *s, const struct dw_block *block,
                                size_t before, const struct conv_backward *b)
{
    struct parallel_share share = s->part.share;
    size_t n = block->at.columns, co = (size_t)s->part.c->out_channels,
           work = block->rows * block->work;
    struct parallel_range mine = parallel_range(block->at.rows, share);
    float *dw = conv_sums_weights_at(s->part.c, block, b->dw);
    bool add = b->add_dw;

    for (int t = parallel_owner(before, s->work, share.parts);
         t <= parallel_owner(before + work - 1, s->work, share.parts); t++) {
        struct parallel_range of = parallel_range(s->work, (struct parallel_share){t, share.parts});
        struct parallel_range rows = conv_sums_rows_of(block, before, of);
        if (rows.first == rows.end)
            continue;
        if (rows.first == 0 && rows.end == block->rows)
            return; /* already in dw */
        const float *from = conv_sums_own(before, of, sums_at(s, t));
        for (size_t row = mine.first; row < mine.end; row++)
            conv_sums_add_rows(dw + row * co, from + row * n, n, add);
        add = true;
    }
}

void conv_add_sums(const struct conv_blocks *s, const struct conv_backward *b)
{
    size_t before = 0;

    if (s->whole) {
        conv_sums_add_whole(s, b);
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        struct dw_block block = conv_sums_block_at(s, i);
        conv_sums_add_block(s, &block, before, b);
        before += block.rows * block.work;
    }
}

size_t conv_gathered_floats(const struct conv *c)
{
    return conv_reads_in_place(c) ? 0 : GATHERED_ROWS * BLOCK_K;
}

size_t conv_sums_floats(void)
{
    return 2 * BLOCK_FLOATS;
}
