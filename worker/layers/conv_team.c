/*
 * A team's passes: products of rows of pixels by panels of channels for z and dx, shared out by
 * register tiles; sums over all pixels for dw, shared out as told below. Grouped, tiny and Winograd
 * convolutions have files of their own.
 */
#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/dry_run.h"
#include "worker/kernels/extent.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/im2col.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/layers/conv_grouped.h"
#include "worker/layers/conv_parts.h"
#include "worker/layers/conv_pixel.h"
#include "worker/layers/conv_winograd.h"

/* A thread's im2col tile: smaller than one thread's alone (conv.c), since its share is. */
enum { TILE_FLOATS = 512 * 1024 / 4, LARGE_TILE_FLOATS = 1024 * 1024 / 4 };

static size_t team_tile_floats(const struct conv *c)
{
    return conv_weights(c) > TILE_FLOATS ? LARGE_TILE_FLOATS : TILE_FLOATS;
}

/* Rows of a tile of `columns`. */
static size_t team_tile_rows(const struct conv *c, size_t columns)
{
    size_t rows = team_tile_floats(c) / columns / TILE_ROWS * TILE_ROWS;
    return rows < TILE_ROWS ? TILE_ROWS : rows;
}

static size_t tiles_of(size_t rows)
{
    return (rows + TILE_ROWS - 1) / TILE_ROWS;
}

/* ---- z = col W */

/* One pass over the output pixels: of x for z, or of dz with the turned kernel for dx. */
struct product {
    const struct conv *c;
    struct window window;
    bool in_place; /* from is the im2col matrix */
    bool packed;
    const float *from, *weights;
    float *to;
    size_t channels; /* of `to` */
    struct conv_runs runs;
    size_t k_all; /* of the packed panels */
    bool add;
    float *col;
    conv_rows *done;
    void *context;
};

static void multiply_tile(const struct product *p, const float *col, size_t rows, size_t column,
                          size_t columns, float *to)
{
    size_t k = conv_columns(&p->window), n = p->channels;

    for (size_t i = 0; i < p->runs.count; i++) {
        size_t row = p->runs.first + i * p->runs.step;
        bool add = p->add || i > 0;
        struct tile_matrix b = {p->weights + row * TILE_COLUMNS + column * p->k_all, p->k_all,
                                false, true};
        if (p->packed)
            tile_gemm(rows, columns, p->runs.length, col + i * p->runs.length, k, &b, to, n, add);
        else
            gemm_nn(rows, columns, p->runs.length, col + i * p->runs.length, k,
                    p->weights + row * n + column, n, to, n, add);
    }
}

static void multiply_block(const struct product *p, const struct parallel_block *block)
{
    size_t k = conv_columns(&p->window), end = block->row + block->rows;
    size_t tile = team_tile_rows(p->c, k > p->channels ? k : p->channels);

    for (size_t row = block->row, rows; row < end; row += rows) {
        const float *col = p->in_place ? p->from + row * k : p->col;
        rows = extent_min(end - row, tile);
        if (!p->in_place)
            im2col(&p->window, p->from, row, rows, p->col);
        multiply_tile(p, col, rows, block->column, block->columns,
                      p->to + row * p->channels + block->column);
        conv_tell(p->done, (struct parallel_block){row, rows, block->column, block->columns},
                  p->context);
    }
}

static void team_multiply(const struct product *p, size_t rows, struct parallel_share share)
{
    struct parallel_block block[PARALLEL_BLOCKS];
    int blocks = parallel_matrix(rows, tiles_of(rows), p->channels,
                                 p->packed ? TILE_COLUMNS : p->channels, share, block);

    for (int i = 0; i < blocks; i++)
        multiply_block(p, &block[i]);
}

static struct parallel_range panels_of(size_t channels, struct parallel_share share)
{
    return parallel_range(channels / TILE_COLUMNS, share);
}

static void team_pack_forward(const struct conv *c, const float *w, struct parallel_share share,
                              float *to)
{
    size_t k = conv_matrix_rows(c), n = (size_t)c->out_channels;
    struct parallel_range panels = panels_of(n, share);
    size_t first = panels.first * TILE_COLUMNS;

    tile_pack(&(struct tile_matrix){w + first, n, false, false}, k,
              panels.end * TILE_COLUMNS - first, to + first * k, k);
}

static void forward_directly(const struct conv *c, const float *w, const float *x, float *z,
                             int images, struct parallel_share share,
                             const struct conv_memory *memory, conv_rows *done, void *context)
{
    size_t n = (size_t)c->out_channels;
    bool packed = conv_uses_tile(c, n);
    struct product p = {.c = c,
                        .window = c->window,
                        .in_place = conv_reads_in_place(c),
                        .packed = packed,
                        .from = x,
                        .weights = packed ? memory->team : w,
                        .to = z,
                        .channels = n,
                        .runs = conv_weight_runs(c),
                        .k_all = conv_matrix_rows(c),
                        .col = memory->own[share.part],
                        .done = done,
                        .context = context};

    if (packed) {
        team_pack_forward(c, w, share, memory->team);
        parallel_barrier(share);
    }
    team_multiply(&p, (size_t)images * conv_pixels_out(c), share);
}

/* ---- tiny images: as many of them as fill a product, each thread its own */

static bool by_pixel(const struct conv *c, int images, int threads)
{
    return conv_by_pixel(c, images / threads);
}

static void team_forward_by_pixel(const struct conv *c, const float *w, const float *x, float *z,
                                  int images, struct parallel_share share,
                                  const struct conv_memory *memory, conv_rows *done, void *context)
{
    struct parallel_range mine = parallel_range((size_t)images, share);
    size_t pixels = conv_pixels_out(c);

    conv_pixel_pack(c, panels_of((size_t)c->out_channels, share), w, memory->team);
    parallel_barrier(share);
    for (size_t i = mine.first, n; i < mine.end; i += n) {
        n = extent_min(mine.end - i, CONV_PIXEL_IMAGES_AT_ONCE);
        conv_pixel_forward_packed(c, memory->team, x, z, i, n);
        conv_tell_rows(done, i * pixels, n * pixels, (size_t)c->out_channels, context);
    }
}

void conv_forward_team(const struct conv *c, const float *w, const float *x, float *z, int images,
                       struct parallel_share share, const struct conv_memory *memory,
                       conv_rows *done, void *context)
{
    enum conv_winograd m = c->winograd[CONV_FORWARD];
    struct conv_winograd_pass pass = {
        .m = m, .u = memory->team, .from = x, .to = z, .done = done, .context = context};

    if (c->algorithm == CONV_GROUPED)
        conv_grouped_forward_team(c, w, x, z, images, share, memory, done, context);
    else if (m)
        conv_winograd_run_team(c, &pass, w, images, share, memory->own[share.part]);
    else if (by_pixel(c, images, share.parts))
        team_forward_by_pixel(c, w, x, z, images, share, memory, done, context);
    else
        forward_directly(c, w, x, z, images, share, memory, done, context);
}

/* ---- dx */

/*
 * dx of a convolution that steps: pixels of dx whose places differ by a multiple of the stride see
 * the same taps, and each tap belongs to one such class. So a class is a product of its own, dz
 * gathered by its taps with their weights turned, and no thread adds to what another made. Shared
 * out by rows of `stride` rows of pixels, a line each, and panels of channels.
 */
enum { TAPS_MAX = 49 };

struct phase {
    int y, x; /* the first pixel of the class */
    int taps;
    int tap[TAPS_MAX]; /* ky * kernel + kx */
    size_t k;          /* taps of the classes before */
};

static struct phase team_phase(const struct window *w, int y, int x, size_t k)
{
    struct phase p = {.y = y, .x = x, .k = k};

    for (int ky = w->tap_first; ky < w->tap_end; ky++)
        for (int kx = w->tap_first; kx < w->tap_end; kx++)
            if ((y + w->pad - ky) % w->stride == 0 && (x + w->pad - kx) % w->stride == 0)
                p.tap[p.taps++] = ky * w->kernel + kx;
    return p;
}

/* Most taps of a class. */
static size_t phase_taps(const struct window *w)
{
    size_t side = (size_t)(window_taps(w) + w->stride - 1) / (size_t)w->stride;
    return side * side;
}

static size_t lines(const struct window *w)
{
    return (size_t)((w->in + w->stride - 1) / w->stride);
}

static size_t gathered_row_floats(const struct conv *c)
{
    return phase_taps(&c->window) * (size_t)c->out_channels + (size_t)c->window.channels;
}

/* Lines that are worked on together. */
static size_t lines_at_once(const struct conv *c)
{
    size_t n = team_tile_floats(c) / (lines(&c->window) * gathered_row_floats(c));
    return n ? n : 1;
}

static void pack_phases(const struct conv *c, const float *w, struct parallel_share share,
                        float *to)
{
    const struct window *win = &c->window;
    size_t ci = (size_t)win->channels, co = (size_t)c->out_channels, k = 0;
    size_t k_all = (size_t)(window_taps(win) * window_taps(win)) * co;
    struct parallel_range panels = panels_of(ci, share);
    size_t first = panels.first * TILE_COLUMNS, count = panels.end * TILE_COLUMNS - first;

    for (int i = 0; i < win->stride * win->stride; i++) {
        struct phase p = team_phase(win, i / win->stride, i % win->stride, 0);
        for (int t = 0; t < p.taps; t++, k += co) {
            struct tile_matrix b = {w + ((size_t)p.tap[t] * ci + first) * co, co, true, false};
            tile_pack(&b, co, count, to + first * k_all + k * TILE_COLUMNS, k_all);
        }
    }
}

struct gather {
    const struct conv *c;
    const struct conv_backward *b;
    const float *packed; /* NULL: OpenBLAS */
    float *col, *out;
};

/* Rows of a line's class: how many pixels. */
static size_t line_pixels(const struct window *w, const struct phase *p)
{
    return (size_t)((w->in - p->x + w->stride - 1) / w->stride);
}

static bool has_line(const struct window *w, const struct phase *p, size_t line)
{
    return (int)(line % lines(w)) * w->stride + p->y < w->in;
}

/* dz as the taps of a class see it from the pixels of a line. */
static float *gather_line(const struct gather *g, const struct phase *p, size_t line, float *col)
{
    const struct window *w = &g->c->window;
    size_t co = (size_t)g->c->out_channels, image = line / lines(w);
    int a = (int)(line % lines(w)), out = w->out;
    const float *dz = g->b->dz + image * (size_t)(out * out) * co;

    for (size_t i = 0; i < line_pixels(w, p); i++)
        for (int t = 0; t < p->taps; t++, col += co) {
            int y = a + (p->y + w->pad - p->tap[t] / w->kernel) / w->stride;
            int x = (int)i + (p->x + w->pad - p->tap[t] % w->kernel) / w->stride;
            if (y < 0 || y >= out || x < 0 || x >= out)
                memset(col, 0, co * sizeof *col);
            else
                memcpy(col, dz + (size_t)(y * out + x) * co, co * sizeof *col);
        }
    return col;
}

/* Products of a class, (rows, columns), from the column on. */
static void multiply_phase(const struct gather *g, const struct phase *p, size_t rows,
                           const struct parallel_block *of)
{
    const struct window *w = &g->c->window;
    size_t ci = (size_t)w->channels, co = (size_t)g->c->out_channels, k = (size_t)p->taps * co;
    size_t k_all = (size_t)(window_taps(w) * window_taps(w)) * co;

    if (g->packed) {
        struct tile_matrix b = {g->packed + of->column * k_all + p->k * co * TILE_COLUMNS, k_all,
                                false, true};
        tile_gemm(rows, of->columns, k, g->col, k, &b, g->out, of->columns, false);
        return;
    }
    for (int t = 0; t < p->taps; t++)
        gemm_nt(rows, of->columns, co, g->col + (size_t)t * co, k,
                g->b->w + ((size_t)p->tap[t] * ci + of->column) * co, co, g->out, of->columns,
                t > 0);
}

static void put_pixel(float *to, const float *from, size_t n, bool add)
{
    for (size_t i = 0; i < n; i++)
        to[i] = add ? to[i] + from[i] : from[i];
}

/* The class's pixels of a line to dx. */
static const float *team_put_line(const struct gather *g, const struct phase *p, size_t line,
                                  const struct parallel_block *of, const float *from)
{
    const struct window *w = &g->c->window;
    size_t ci = (size_t)w->channels, in = (size_t)w->in, image = line / lines(w);
    size_t y = line % lines(w) * (size_t)w->stride + (size_t)p->y;
    float *to = g->b->dx + ((image * in + y) * in + (size_t)p->x) * ci + of->column;

    for (size_t i = 0; i < line_pixels(w, p); i++, to += (size_t)w->stride * ci) {
        if (p->taps) {
            put_pixel(to, from, of->columns, g->b->add_dx);
            from += of->columns;
        } else if (!g->b->add_dx) {
            memset(to, 0, of->columns * sizeof *to);
        }
    }
    return from;
}

/* A class of some lines. of: rows are lines. */
static void run_phase(const struct gather *g, const struct phase *p,
                      const struct parallel_block *of)
{
    const struct window *w = &g->c->window;
    size_t co = (size_t)g->c->out_channels, rows = 0, end = of->row + of->rows;
    float *col = g->col;
    const float *out = g->out;
    double piece = trace_begin();

    for (size_t line = of->row; line < end; line++)
        if (has_line(w, p, line)) {
            rows += line_pixels(w, p);
            if (!dry_run)
                col = gather_line(g, p, line, col);
        }
    dry_run_moves(2 * rows * ((size_t)p->taps * co + of->columns));
    trace_part(piece, TRACE_IM2COL);
    if (p->taps && rows)
        multiply_phase(g, p, rows, of);
    piece = trace_begin();
    for (size_t line = of->row; line < end && !dry_run; line++)
        if (has_line(w, p, line))
            out = team_put_line(g, p, line, of, out);
    trace_part(piece, TRACE_IM2COL);
}

/* The first pixel of a line, counted through the batch. */
static size_t line_pixel(const struct window *w, size_t line)
{
    size_t in = (size_t)w->in;
    return (line / lines(w) * in + line % lines(w) * (size_t)w->stride) * in;
}

static void run_lines(const struct gather *g, const struct parallel_block *of)
{
    const struct window *w = &g->c->window;
    size_t k = 0, first = line_pixel(w, of->row);

    for (int i = 0; i < w->stride * w->stride; i++) {
        struct phase p = team_phase(w, i / w->stride, i % w->stride, k);
        k += (size_t)p.taps;
        run_phase(g, &p, of);
    }
    conv_tell(g->b->done,
              (struct parallel_block){first, line_pixel(w, of->row + of->rows) - first, of->column,
                                      of->columns},
              g->b->context);
}

static void data_by_phases(const struct conv *c, const struct conv_backward *b, int images,
                           struct parallel_share share, const float *packed, float *own)
{
    size_t ci = (size_t)c->window.channels, all = lines(&c->window) * (size_t)images;
    size_t most = lines_at_once(c), rows = most * lines(&c->window);
    struct gather g = {c, b, packed, own,
                       own + rows * phase_taps(&c->window) * (size_t)c->out_channels};
    struct parallel_block block[PARALLEL_BLOCKS];
    int blocks = parallel_matrix(all, all, ci, packed ? TILE_COLUMNS : ci, share, block);

    for (int i = 0; i < blocks; i++)
        for (size_t line = 0; line < block[i].rows; line += most) {
            struct parallel_block of = block[i];
            of.row += line;
            of.rows = extent_min(block[i].rows - line, most);
            run_lines(&g, &of);
        }
}

static size_t phases_floats(const struct conv *c)
{
    return lines_at_once(c) * lines(&c->window) * gathered_row_floats(c);
}

static bool packs_data(const struct conv *c)
{
    return conv_uses_tile(c, (size_t)c->window.channels);
}

/* Weights for dx, as data_directly wants them. */
static void pack_data(const struct conv *c, const float *w, int images, struct parallel_share share,
                      float *to)
{
    size_t n = (size_t)c->out_channels;
    struct parallel_range panels = panels_of((size_t)c->window.channels, share);
    size_t first = panels.first * TILE_COLUMNS, count = panels.end * TILE_COLUMNS - first;

    if (by_pixel(c, images, share.parts))
        conv_pixel_pack_data(c, panels, w, to);
    else if (conv_reads_in_place(c) && packs_data(c))
        tile_pack(&(struct tile_matrix){w + first * n, n, true, false}, n, count, to + first * n,
                  n);
    else if (conv_turns_kernel(c))
        conv_pack_turned(c, panels, w, to);
    else if (packs_data(c))
        pack_phases(c, w, share, to);
}

/* dx as a product over rows of dz: of a 1x1, or with the turned kernel. */
static struct product data_product(const struct conv *c, const struct conv_backward *b,
                                   const float *packed, float *own)
{
    struct window t = conv_turned_window(c);
    return (struct product){
        .c = c,
        .window = t,
        .in_place = conv_reads_in_place(c),
        .packed = true,
        .from = b->dz,
        .weights = packed,
        .to = b->dx,
        .channels = (size_t)c->window.channels,
        .runs = {1, conv_columns(&t), 0, 0},
        .k_all = conv_columns(&t),
        .add = b->add_dx,
        .col = own,
        .done = b->done,
        .context = b->context
    };
}

static void data_by_pixel(const struct conv *c, const struct conv_backward *b, int images,
                          struct parallel_share share, const float *packed)
{
    struct parallel_range mine = parallel_range((size_t)images, share);
    size_t pixels = conv_pixels_in(c);

    for (size_t i = mine.first, n; i < mine.end; i += n) {
        n = extent_min(mine.end - i, CONV_PIXEL_IMAGES_AT_ONCE);
        conv_pixel_data_packed(c, packed, b->dz, b->dx, b->add_dx, i, n);
        conv_tell_rows(b->done, i * pixels, n * pixels, (size_t)c->window.channels, b->context);
    }
}

static bool is_product(const struct conv *c)
{
    return (conv_reads_in_place(c) && packs_data(c)) || conv_turns_kernel(c);
}

/* After pack_data and a barrier. */
static void data_directly(const struct conv *c, const struct conv_backward *b, int images,
                          struct parallel_share share, const struct conv_memory *memory)
{
    float *own = memory->own[share.part];
    struct product p = data_product(c, b, memory->team, own);

    if (by_pixel(c, images, share.parts))
        data_by_pixel(c, b, images, share, memory->team);
    else if (is_product(c))
        team_multiply(&p, (size_t)images * conv_pixels_in(c), share);
    else
        data_by_phases(c, b, images, share, packs_data(c) ? memory->team : NULL, own);
}

/* ---- dw */

/*
 * dw = col^T dz is cut into blocks, each of which wants sums over all rows. Rows of all blocks, one
 * block after the other and by the work they are, form the line that is shared out: a thread has
 * some blocks to itself, which go to dw at once, and parts of the rows of at most two others, whose
 * sums lie in its own memory until all threads' are added, in order. So no thread has a copy of dw,
 * and the shares are even whatever the threads.
 *
 * Where dw is small and rows are many there is one block, all of it.
 */
enum { BLOCK_FLOATS = 32 * 1024, BLOCK_K = 256, GATHERED_ROWS = 256 };
enum { READY_CHANNELS = 64 };
enum { WHOLE_FLOATS = 256 * 1024, SMALL_FLOATS = 64 * 1024, MANY_ROWS = 1024 };

struct blocks {
    const struct conv *c;
    size_t rows; /* of the im2col matrix, or images where it goes by pixel */
    bool whole, pixel;
    int first_tap, taps;     /* of one direction */
    size_t k_parts, n_parts; /* of a tap */
    size_t n_unit;           /* columns are cut at its multiples */
    size_t count;            /* of blocks */
    size_t work;             /* of all of them */
};

struct dw_block {
    int tap;                  /* ky * kernel + kx; -1: all that see pixels */
    struct parallel_block at; /* of the tap's (c_in, c_out) weights */
    size_t rows, work;        /* of a row */
};

static bool may_be_whole(const struct conv *c)
{
    size_t tile = conv_reads_in_place(c) ? 0 : team_tile_floats(c);
    return conv_weights(c) + tile <= WHOLE_FLOATS + SMALL_FLOATS / 4;
}

static bool is_whole(const struct conv *c, int images, int threads)
{
    size_t rows = (size_t)images * conv_pixels_out(c) / (size_t)threads;
    return may_be_whole(c) && (conv_weights(c) <= SMALL_FLOATS || rows >= MANY_ROWS);
}

static struct dw_block block_at(const struct blocks *s, size_t i)
{
    size_t ci = (size_t)s->c->window.channels, co = (size_t)s->c->out_channels;
    size_t units = (co + s->n_unit - 1) / s->n_unit;
    int taps = s->taps;

    if (s->whole)
        return (struct dw_block){
            -1, {0, conv_matrix_rows(s->c), 0, co},
             s->rows, 1
        };
    size_t n = i % s->n_parts, k = i / s->n_parts % s->k_parts;
    int t = (int)(i / s->n_parts / s->k_parts);
    int tap = (s->first_tap + t / taps) * s->c->window.kernel + s->first_tap + t % taps;
    size_t row = ci * k / s->k_parts, row_end = ci * (k + 1) / s->k_parts;
    size_t column = units * n / s->n_parts * s->n_unit;
    size_t column_end = extent_min(units * (n + 1) / s->n_parts * s->n_unit, co);
    size_t hits = s->pixel ? conv_pixel_hits(s->c, tap) : 1;
    return (struct dw_block){
        tap,
        {row, row_end - row, column, column_end - column},
        s->rows * hits,
        (row_end - row) * (column_end - column)
    };
}

static size_t all_work(const struct blocks *s)
{
    size_t work = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct dw_block b = block_at(s, i);
        work += b.rows * b.work;
    }
    return work;
}

static struct blocks blocks_of(const struct conv *c, int images, int threads)
{
    const struct window *w = &c->window;
    size_t ci = (size_t)w->channels, co = (size_t)c->out_channels;
    struct blocks s = {.c = c,
                       .rows = (size_t)images * conv_pixels_out(c),
                       .pixel = by_pixel(c, images, threads),
                       .first_tap = w->tap_first,
                       .taps = window_taps(w),
                       .n_unit = conv_uses_tile(c, co) ? TILE_COLUMNS : 1};

    s.whole = !s.pixel && is_whole(c, images, threads);
    s.k_parts = (ci + BLOCK_K - 1) / BLOCK_K;
    size_t k = (ci + s.k_parts - 1) / s.k_parts, n = BLOCK_FLOATS / k / s.n_unit * s.n_unit;
    n = n ? n : s.n_unit;
    s.n_parts = (co + n - 1) / n;
    if (s.pixel)
        s.rows = (size_t)images;
    s.count = s.whole ? 1 : (size_t)(s.taps * s.taps) * s.k_parts * s.n_parts;
    s.work = all_work(&s);
    return s;
}

/* Rows of a block that a thread has: those whose work begins in its range of all work. */
static struct parallel_range rows_of(const struct dw_block *b, size_t before,
                                     struct parallel_range mine)
{
    struct parallel_range r = {0, 0};

    if (mine.first > before)
        r.first = extent_min((mine.first - before + b->work - 1) / b->work, b->rows);
    if (mine.end > before)
        r.end = extent_min((mine.end - before + b->work - 1) / b->work, b->rows);
    return r;
}

/* A tap's part of the im2col matrix: c_in channels of it. */
static void gather_tap(const struct window *w, const float *x, size_t row, size_t rows, int tap,
                       size_t channel, size_t channels, float *col)
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

/* Where sums go: dw itself, or a thread's own memory. */
struct sums {
    float *to;
    size_t ld;
    bool add;
};

static void add_products(const struct conv *c, size_t rows, const float *col, size_t ld,
                         const struct parallel_block *at, const float *dz, const struct sums *to)
{
    size_t n = (size_t)c->out_channels;
    struct tile_matrix b = {dz + at->column, n, false, false};

    if (conv_uses_tile(c, n))
        tile_gemm_transposed(at->rows, at->columns, rows, col, ld, &b, to->to, to->ld, to->add);
    else
        gemm_tn(at->rows, at->columns, rows, col, ld, dz + at->column, n, to->to, to->ld, to->add);
}

/* Rows of a block of one tap. */
static void sum_block(const struct blocks *s, const struct conv_backward *b,
                      const struct dw_block *block, struct parallel_range rows, struct sums to,
                      float *col)
{
    const struct conv *c = s->c;
    size_t n = (size_t)c->out_channels, ci = (size_t)c->window.channels;
    size_t step = conv_reads_in_place(c) ? rows.end - rows.first : GATHERED_ROWS;

    if (s->pixel) {
        conv_pixel_weights_part(c, b->x, b->dz, block->tap, rows, s->rows, block->at, to.to, to.ld,
                                to.add);
        return;
    }
    for (size_t row = rows.first; row < rows.end; row += step, to.add = true) {
        size_t count = extent_min(rows.end - row, step);
        const float *from = b->x + row * ci + block->at.row, *dz = b->dz + row * n;
        size_t ld = ci;
        if (!conv_reads_in_place(c)) {
            ld = block->at.rows;
            from = col;
            gather_tap(&c->window, b->x, row, count, block->tap, block->at.row, ld, col);
        }
        add_products(c, count, from, ld, &block->at, dz, &to);
    }
}

/* All of dw from some rows, tile by tile: with `data`, dx of the rows too, while dz is in the
 * cache. */
static void sum_whole(const struct conv *c, const struct conv_backward *b,
                      struct parallel_range rows, struct sums to, float *col,
                      const struct product *data)
{
    struct conv_runs runs = conv_weight_runs(c);
    size_t k = conv_columns(&c->window), n = (size_t)c->out_channels;
    size_t tile = team_tile_rows(c, k > n ? k : n);

    for (size_t row = rows.first; row < rows.end; row += tile, to.add = true) {
        size_t count = extent_min(rows.end - row, tile);
        const float *from = conv_reads_in_place(c) ? b->x + row * k : col;
        if (data || !b->dx)
            conv_tell_rows(b->ready, row, count, n, b->context);
        if (!conv_reads_in_place(c))
            im2col(&c->window, b->x, row, count, col);
        for (size_t i = 0; i < runs.count; i++) {
            struct parallel_block at = {0, runs.length, 0, n};
            struct sums part = {to.to + (runs.first + i * runs.step) * n, n, to.add};
            add_products(c, count, from + i * runs.length, k, &at, b->dz + row * n, &part);
        }
        if (data)
            multiply_block(data, &(struct parallel_block){row, count, 0, data->channels});
    }
}

/* A thread's own sums of a block that it shares: of the one in which its range begins, or ends. */
static float *own_sums(size_t before, struct parallel_range mine, float *own)
{
    return own + (mine.first >= before ? 0 : BLOCK_FLOATS);
}

static float *weights_at(const struct conv *c, const struct dw_block *b, float *dw)
{
    size_t ci = (size_t)c->window.channels, co = (size_t)c->out_channels;
    size_t tap = b->tap < 0 ? 0 : (size_t)b->tap;
    return dw + (tap * ci + b->at.row) * co + b->at.column;
}

/* Taps that only ever see padding. */
static void clear_unseen(const struct conv *c, float *dw, struct parallel_share share)
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

static void sum_blocks(const struct blocks *s, const struct conv_backward *b,
                       struct parallel_share share, float *own)
{
    struct parallel_range mine = parallel_range(s->work, share);
    size_t before = 0;

    if (!b->add_dw)
        clear_unseen(s->c, b->dw, share);
    for (size_t i = 0; i < s->count && before < mine.end; i++) {
        struct dw_block block = block_at(s, i);
        struct parallel_range rows = rows_of(&block, before, mine);
        struct sums to = {own_sums(before, mine, own), block.at.columns, false};
        if (rows.first == 0 && rows.end == block.rows)
            to = (struct sums){weights_at(s->c, &block, b->dw), (size_t)s->c->out_channels,
                               b->add_dw};
        if (rows.first < rows.end)
            sum_block(s, b, &block, rows, to, own + 2 * BLOCK_FLOATS);
        before += block.rows * block.work;
    }
}

static void team_add_rows(float *to, const float *from, size_t n, bool add)
{
    if (dry_run_moves((add ? 3 : 2) * n))
        return;
    for (size_t i = 0; i < n; i++)
        to[i] = add ? to[i] + from[i] : from[i];
}

/* Of a block that several threads have rows of: a thread's share of the weights. */
static void add_block(const struct blocks *s, const struct dw_block *block, size_t before,
                      const struct conv_backward *b, struct parallel_share share,
                      const struct conv_memory *memory)
{
    size_t n = block->at.columns, co = (size_t)s->c->out_channels, work = block->rows * block->work;
    struct parallel_range mine = parallel_range(block->at.rows, share);
    float *dw = weights_at(s->c, block, b->dw);
    bool add = b->add_dw;

    for (int t = parallel_owner(before, s->work, share.parts);
         t <= parallel_owner(before + work - 1, s->work, share.parts); t++) {
        struct parallel_range of = parallel_range(s->work, (struct parallel_share){t, share.parts});
        struct parallel_range rows = rows_of(block, before, of);
        if (rows.first == rows.end)
            continue;
        if (rows.first == 0 && rows.end == block->rows && !s->whole)
            return; /* it is there */
        const float *from = s->whole ? memory->own[t] : own_sums(before, of, memory->own[t]);
        for (size_t row = mine.first; row < mine.end; row++)
            team_add_rows(dw + row * co, from + row * n, n, add);
        add = true;
    }
}

/* After a barrier. */
static void add_sums(const struct blocks *s, const struct conv_backward *b,
                     struct parallel_share share, const struct conv_memory *memory)
{
    size_t before = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct dw_block block = block_at(s, i);
        add_block(s, &block, before, b, share, memory);
        before += block.rows * block.work;
    }
}

/* ---- both gradients */

bool conv_backward_by_rows(const struct conv *c, int images, int threads, bool wants_dx)
{
    if (c->algorithm == CONV_GROUPED || c->winograd[CONV_WEIGHTS] || by_pixel(c, images, threads) ||
        !is_whole(c, images, threads))
        return false;
    return !wants_dx || (!c->winograd[CONV_DATA] && conv_reads_in_place(c) && packs_data(c));
}

static void make_ready(const struct conv *c, const struct conv_backward *b, int images,
                       struct parallel_share share)
{
    struct parallel_block block[PARALLEL_BLOCKS];
    size_t rows = (size_t)images * conv_pixels_out(c);
    int blocks = parallel_matrix(rows, rows, (size_t)c->out_channels, READY_CHANNELS, share, block);

    for (int i = 0; i < blocks; i++)
        conv_tell(b->ready, block[i], b->context);
}

static void weights_directly(const struct blocks *s, const struct conv_backward *b,
                             struct parallel_share share, const struct conv_memory *memory,
                             bool by_rows)
{
    const struct conv *c = s->c;
    float *own = memory->own[share.part], *col = own + conv_weights(c);
    struct product data = data_product(c, b, memory->team, col);

    if (!s->whole) {
        sum_blocks(s, b, share, own);
        return;
    }
    if (window_taps(&c->window) < c->window.kernel && !dry_run)
        memset(own, 0, conv_weights(c) * sizeof *own);
    sum_whole(c, b, parallel_range(s->rows, share), (struct sums){own, 0, false}, col,
              by_rows && b->dx ? &data : NULL);
}

static void team_weights_by_winograd(const struct conv *c, const struct conv_backward *b,
                                     int images, struct parallel_share share,
                                     const struct conv_memory *memory)
{
    struct conv_winograd_sums sums = {
        .m = c->winograd[CONV_WEIGHTS], .x = b->x, .dz = b->dz, .sums = memory->team};

    conv_winograd_sum_team(c, &sums, images, share);
    conv_winograd_finish_weights(c, sums.m, share, sums.sums, b->dw, b->add_dw);
}

static void team_data_by_winograd(const struct conv *c, const struct conv_backward *b, int images,
                                  struct parallel_share share, const struct conv_memory *memory)
{
    struct conv_winograd_pass pass = {.m = c->winograd[CONV_DATA],
                                      .turned = true,
                                      .add = b->add_dx,
                                      .u = memory->team,
                                      .from = b->dz,
                                      .to = b->dx,
                                      .done = b->done,
                                      .context = b->context};

    conv_winograd_run_team(c, &pass, b->w, images, share, memory->own[share.part]);
}

/* dx of its own, where it is not made row by row with dw; dw first, if by Winograd. */
static void team_backward_directly(const struct conv *c, const struct conv_backward *b, int images,
                                   struct parallel_share share, const struct conv_memory *memory,
                                   bool data)
{
    bool by_rows = conv_backward_by_rows(c, images, share.parts, b->dx != NULL);
    struct blocks s = blocks_of(c, images, share.parts);

    if (data)
        pack_data(c, b->w, images, share, memory->team);
    if (data || !by_rows)
        parallel_barrier(share);
    if (data && !by_rows)
        data_directly(c, b, images, share, memory);
    weights_directly(&s, b, share, memory, by_rows);
    parallel_barrier(share);
    add_sums(&s, b, share, memory);
}

void conv_backward_team(const struct conv *c, const struct conv_backward *b, int images,
                        struct parallel_share share, const struct conv_memory *memory)
{
    bool data = b->dx && !c->winograd[CONV_DATA];

    if (c->algorithm == CONV_GROUPED) {
        conv_grouped_backward_team(c, b, images, share, memory);
        return;
    }
    if (!conv_backward_by_rows(c, images, share.parts, b->dx != NULL))
        make_ready(c, b, images, share);
    if (c->winograd[CONV_WEIGHTS])
        team_weights_by_winograd(c, b, images, share, memory);
    else
        team_backward_directly(c, b, images, share, memory, data);
    if (!b->dx || (data && !c->winograd[CONV_WEIGHTS]))
        return;
    parallel_barrier(share);
    if (data) {
        pack_data(c, b->w, images, share, memory->team);
        parallel_barrier(share);
        data_directly(c, b, images, share, memory);
    } else {
        team_data_by_winograd(c, b, images, share, memory);
    }
}

/* ---- memory */

size_t conv_team_floats(const struct conv *c, int images, int threads)
{
    size_t most = conv_weights(c);

    if (c->algorithm == CONV_GROUPED)
        return conv_grouped_team_floats(c);
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            most = extent_max(most, conv_winograd_team_floats(c, c->winograd[i], images, threads));
    return most;
}

static size_t product_floats(const struct conv *c, const struct window *w, size_t channels)
{
    size_t widest = extent_max(conv_columns(w), channels);
    return team_tile_rows(c, widest) * widest;
}

size_t conv_own_floats(const struct conv *c)
{
    struct window turned = conv_turned_window(c);
    size_t co = (size_t)c->out_channels, ci = (size_t)c->window.channels, most;

    if (c->algorithm == CONV_GROUPED)
        return conv_grouped_own_floats(c);
    most = extent_max(2 * BLOCK_FLOATS + GATHERED_ROWS * BLOCK_K, phases_floats(c));
    if (!conv_reads_in_place(c))
        most =
            extent_max(most, extent_max(product_floats(c, &c->window, co),
                                        conv_turns_kernel(c) ? product_floats(c, &turned, ci) : 0));
    if (may_be_whole(c))
        most =
            extent_max(most, conv_weights(c) +
                                 (conv_reads_in_place(c) ? 0 : product_floats(c, &c->window, co)));
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            most = extent_max(most, conv_winograd_own_floats(c, c->winograd[i]));
    return most;
}
