#include "worker/layers/conv_phases.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/layers/conv_product.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

enum { TAPS_MAX = 49 };

struct phase {
    int y, x; /* first pixel of the class */
    int taps;
    int tap[TAPS_MAX]; /* ky * kernel + kx */
    size_t k;          /* taps of the previous classes */
};

static struct phase conv_phases_team(const struct window *w, int y, int x, size_t k)
{
    struct phase p = {.y = y, .x = x, .k = k};

    for (int ky = w->tap_first; ky < w->tap_end; ky++)
        for (int kx = w->tap_first; kx < w->tap_end; kx++)
            if ((y + w->pad - ky) % w->stride == 0 && (x + w->pad - kx) % w->stride == 0)
                p.tap[p.taps++] = ky * w->kernel + kx;
    return p;
}

static size_t phase_taps(const struct window *w)
{
    size_t side = (size_t)(window_taps(w) + w->stride - 1) / (size_t)w->stride;
    return side * side;
}

static size_t conv_phases_lines(const struct window *w)
{
    return (size_t)((w->in + w->stride - 1) / w->stride);
}

static size_t conv_phases_gathered_row_floats(const struct conv *c)
{
    return phase_taps(&c->window) * (size_t)c->out_channels + (size_t)c->window.channels;
}

static size_t conv_phases_lines_at_once(const struct conv *c)
{
    size_t n = conv_tile_floats(c, false) /
               (conv_phases_lines(&c->window) * conv_phases_gathered_row_floats(c));
    return n ? n : 1;
}

void conv_phases_pack(const struct conv *c, const float *w, struct parallel_share share, float *to)
{
    const struct window *win = &c->window;
    size_t ci = (size_t)win->channels, co = (size_t)c->out_channels, k = 0;
    size_t k_all = (size_t)(window_taps(win) * window_taps(win)) * co;
    struct parallel_range panels = conv_panels(ci, share);
    size_t first = panels.first * tile_columns(), count = panels.end * tile_columns() - first;

    for (int i = 0; i < win->stride * win->stride; i++) {
        struct phase p = conv_phases_team(win, i / win->stride, i % win->stride, 0);
        for (int t = 0; t < p.taps; t++, k += co) {
            struct tile_matrix b = {w + ((size_t)p.tap[t] * ci + first) * co, co, true, false};
            tile_pack(&b, co, count, to + first * k_all + k * tile_columns(), k_all);
        }
    }
}

struct gather {
    const struct conv *c;
    const struct conv_backward *b;
    const float *packed; /* NULL: use OpenBLAS */
    size_t lines;        /* of all images */
    float *col, *out;    /* of the working thread */
};

static size_t conv_phases_line_pixels(const struct window *w, const struct phase *p)
{
    return (size_t)((w->in - p->x + w->stride - 1) / w->stride);
}

static bool conv_phases_has_line(const struct window *w, const struct phase *p, size_t line)
{
    return (int)(line % conv_phases_lines(w)) * w->stride + p->y < w->in;
}

static float *conv_phases_gather_line(const struct gather *g, const struct phase *p, size_t line,
                                      float *col)
{
    const struct window *w = &g->c->window;
    size_t co = (size_t)g->c->out_channels, image = line / conv_phases_lines(w);
    int a = (int)(line % conv_phases_lines(w)), out = w->out;
    const float *dz = g->b->dz + image * (size_t)(out * out) * co;

    for (size_t i = 0; i < conv_phases_line_pixels(w, p); i++)
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

static void conv_phases_multiply(const struct gather *g, const struct phase *p, size_t rows,
                                 const struct parallel_block *of)
{
    const struct window *w = &g->c->window;
    size_t ci = (size_t)w->channels, co = (size_t)g->c->out_channels, k = (size_t)p->taps * co;
    size_t k_all = (size_t)(window_taps(w) * window_taps(w)) * co;

    if (g->packed) {
        struct tile_matrix b = {g->packed + of->column * k_all + p->k * co * tile_columns(), k_all,
                                false, true};
        tile_gemm(rows, of->columns, k, g->col, k, &b, g->out, of->columns, false);
        return;
    }
    for (int t = 0; t < p->taps; t++)
        gemm_nt(rows, of->columns, co, g->col + (size_t)t * co, k,
                g->b->w + ((size_t)p->tap[t] * ci + of->column) * co, co, g->out, of->columns,
                t > 0);
}

static void conv_phases_put_pixel(float *to, const float *from, size_t n, bool add)
{
    for (size_t i = 0; i < n; i++)
        to[i] = add ? to[i] + from[i] : from[i];
}

static const float *conv_phases_team_put_line(const struct gather *g, const struct phase *p,
                                              size_t line, const struct parallel_block *of,
                                              const float *from)
{
    const struct window *w = &g->c->window;
    size_t ci = (size_t)w->channels, in = (size_t)w->in, image = line / conv_phases_lines(w);
    size_t y = line % conv_phases_lines(w) * (size_t)w->stride + (size_t)p->y;
    float *to = g->b->dx + ((image * in + y) * in + (size_t)p->x) * ci + of->column;

    for (size_t i = 0; i < conv_phases_line_pixels(w, p); i++, to += (size_t)w->stride * ci) {
        if (p->taps) {
            conv_phases_put_pixel(to, from, of->columns, g->b->add_dx);
            from += of->columns;
        } else if (!g->b->add_dx) {
            memset(to, 0, of->columns * sizeof *to);
        }
    }
    return from;
}

static void conv_phases_run(const struct gather *g, const struct phase *p,
                            const struct parallel_block *of)
{
    const struct window *w = &g->c->window;
    size_t co = (size_t)g->c->out_channels, rows = 0, end = of->row + of->rows;
    float *col = g->col;
    const float *out = g->out;
    double piece = trace_begin();

    for (size_t line = of->row; line < end; line++)
        if (conv_phases_has_line(w, p, line)) {
            rows += conv_phases_line_pixels(w, p);
            if (!dry_run)
                col = conv_phases_gather_line(g, p, line, col);
        }
    dry_run_moves(2 * rows * ((size_t)p->taps * co + of->columns));
    trace_part(piece, TRACE_IM2COL);
    if (p->taps && rows)
        conv_phases_multiply(g, p, rows, of);
    piece = trace_begin();
    for (size_t line = of->row; line < end && !dry_run; line++)
        if (conv_phases_has_line(w, p, line))
            out = conv_phases_team_put_line(g, p, line, of, out);
    trace_part(piece, TRACE_IM2COL);
}

static size_t conv_phases_line_pixel(const struct window *w, size_t line)
{
    size_t in = (size_t)w->in;
    return (line / conv_phases_lines(w) * in + line % conv_phases_lines(w) * (size_t)w->stride) *
           in;
}

static void conv_phases_run_lines(const struct gather *g, const struct parallel_block *of)
{
    const struct window *w = &g->c->window;
    size_t k = 0, first = conv_phases_line_pixel(w, of->row);

    for (int i = 0; i < w->stride * w->stride; i++) {
        struct phase p = conv_phases_team(w, i / w->stride, i % w->stride, k);
        k += (size_t)p.taps;
        conv_phases_run(g, &p, of);
    }
    conv_call_hook(g->b->done,
                   (struct parallel_block){first,
                                           conv_phases_line_pixel(w, of->row + of->rows) - first,
                                           of->column, of->columns},
                   g->b->context);
}

static void phases_piece(const struct parallel_piece *piece, void *context)
{
    const struct gather *g = context;
    size_t ci = (size_t)g->c->window.channels, max = conv_phases_lines_at_once(g->c);
    struct parallel_block block[PARALLEL_BLOCKS];
    int blocks = parallel_matrix(g->lines, g->lines, ci, g->packed ? tile_columns() : ci,
                                 parallel_piece_share(piece), block);

    for (int i = 0; i < blocks; i++)
        for (size_t line = 0; line < block[i].rows; line += max) {
            struct parallel_block of = block[i];
            of.row += line;
            of.rows = size_min(block[i].rows - line, max);
            conv_phases_run_lines(g, &of);
        }
}

void conv_phases_data(const struct conv_part *part, const struct conv_backward *b,
                      const float *packed)
{
    const struct window *w = &part->c->window;
    size_t max = conv_phases_lines_at_once(part->c), rows = max * conv_phases_lines(w);
    float *own = conv_part_own(part);
    struct gather g = {part->c, b,
                       packed,  conv_phases_lines(w) * (size_t)part->images,
                       own,     own + rows * phase_taps(w) * (size_t)part->c->out_channels};

    parallel_take(part->share, g.lines / (size_t)part->share.parts / max, phases_piece, &g);
}

size_t conv_phases_floats(const struct conv *c)
{
    return conv_phases_lines_at_once(c) * conv_phases_lines(&c->window) *
           conv_phases_gathered_row_floats(c);
}
