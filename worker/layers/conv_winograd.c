#include "worker/layers/conv_winograd.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/kernels/winograd.h"

/* PAD: matrices whose rows or positions lie a multiple of 4 KiB apart fall on each other in the
 * caches. */
enum { PAD = 16 };

/* Measured best: a group of tiles takes as much as leaves room for the weights in the second-level
 * cache; weights that do not fit there are worth reading for many tiles only. */
enum { WORK_BYTES = 1 << 20, LARGE_WEIGHTS_BYTES = 4 << 20, LARGE_WORK_BYTES = 10 << 20 };

struct sizes {
    int m;
    size_t positions;
    size_t from, to;           /* channels */
    size_t side;               /* pixels */
    size_t tiles;              /* of a side */
    size_t rows;               /* of tiles, worked on together */
    size_t group;              /* tiles in them */
    size_t from_ld, to_ld;     /* floats of a tile at one position */
    size_t from_step, to_step; /* floats of a position */
    size_t weights_step;
};

static bool has_large_weights(const struct sizes *s)
{
    return s->positions * s->weights_step * sizeof(float) > LARGE_WEIGHTS_BYTES;
}

static size_t group_rows(const struct sizes *s)
{
    size_t tile_bytes = s->positions * (s->from_ld + s->to_ld) * sizeof(float);
    size_t tiles = (has_large_weights(s) ? LARGE_WORK_BYTES : WORK_BYTES) / tile_bytes;

    return tiles < s->tiles ? 1 : tiles / s->tiles;
}

static struct sizes sizes_of(const struct conv *c, enum conv_winograd m, bool turned)
{
    size_t ci = (size_t)c->window.channels, co = (size_t)c->out_channels;
    struct sizes s = {.m = (int)m, .from = turned ? co : ci, .to = turned ? ci : co};

    s.positions = (size_t)winograd_positions(s.m);
    s.side = (size_t)c->window.out;
    s.tiles = (s.side + (size_t)m - 1) / (size_t)m;
    s.from_ld = s.from + PAD;
    s.to_ld = s.to + PAD;
    s.weights_step = ci * co + PAD;
    s.rows = group_rows(&s);
    s.group = s.rows * s.tiles;
    s.from_step = s.group * s.from_ld + PAD;
    s.to_step = s.group * s.to_ld + PAD;
    return s;
}

bool conv_winograd_takes(const struct conv *c)
{
    const struct window *w = &c->window;
    return c->groups == 1 && w->kernel == 3 && w->stride == 1 && w->pad == 1 &&
           tile_gemm_takes((size_t)w->channels) && tile_gemm_takes((size_t)c->out_channels);
}

bool conv_winograd_has_large_weights(const struct conv *c, enum conv_winograd m)
{
    struct sizes s = sizes_of(c, m, false);
    return has_large_weights(&s);
}

size_t conv_winograd_images(const struct conv *c, enum conv_winograd m)
{
    struct sizes s = sizes_of(c, m, false);
    return (s.rows + s.tiles - 1) / s.tiles;
}

size_t conv_winograd_weights_floats(const struct conv *c, enum conv_winograd m)
{
    struct sizes s = sizes_of(c, m, false);
    return s.positions * s.weights_step;
}

/* Behind the two groups of tiles: a pixel of zeros, and one for what nobody wants. */
static size_t edge_floats(const struct sizes *s)
{
    return s->from > s->to ? s->from : s->to;
}

size_t conv_winograd_work_floats(const struct conv *c, enum conv_winograd m)
{
    struct sizes s = sizes_of(c, m, false);
    return s.positions * (s.from_step + s.to_step) + 2 * edge_floats(&s);
}

struct range {
    size_t first, end;
};

/* A thread's part of n. */
static struct range range_of(struct conv_share share, size_t n)
{
    size_t part = (size_t)share.part, parts = (size_t)share.parts;
    return (struct range){n * part / parts, n * (part + 1) / parts};
}

/* Panels (to / TILE_COLUMNS, from, TILE_COLUMNS) of each position. */
static void pack_forward(const struct sizes *s, struct range panels, const float *w, float *u)
{
    size_t tap = s->from * s->to;

    for (size_t j = panels.first * TILE_COLUMNS; j < panels.end * TILE_COLUMNS; j += TILE_COLUMNS)
        for (size_t i = 0; i < s->from; i++)
            winograd_kernel(s->m, w + i * s->to + j, (ptrdiff_t)tap, TILE_COLUMNS,
                            u + j * s->from + i * TILE_COLUMNS, s->weights_step);
}

enum { TURN_AT_ONCE = 64 };

/* Blocks of TILE_COLUMNS input channels by TURN_AT_ONCE output channels, transposed on their way.
 */
static void pack_turned(const struct sizes *s, struct range panels, const float *w, float *u)
{
    float block[WINOGRAD_POSITIONS_MAX * TILE_COLUMNS * TURN_AT_ONCE] __attribute__((aligned(64)));
    size_t tap = s->from * s->to, step = TILE_COLUMNS * TURN_AT_ONCE;

    for (size_t j = panels.first * TILE_COLUMNS; j < panels.end * TILE_COLUMNS; j += TILE_COLUMNS)
        for (size_t k = 0, n; k < s->from; k += n) {
            n = s->from - k < TURN_AT_ONCE ? s->from - k : TURN_AT_ONCE;
            for (size_t i = 0; i < TILE_COLUMNS; i++)
                winograd_kernel(s->m, w + 8 * tap + (j + i) * s->from + k, -(ptrdiff_t)tap, n,
                                block + i * TURN_AT_ONCE, step);
            for (size_t p = 0; p < s->positions; p++) {
                struct tile_matrix b = {block + p * step, TURN_AT_ONCE, true, false};
                tile_pack(&b, n, TILE_COLUMNS,
                          u + p * s->weights_step + j * s->from + k * TILE_COLUMNS, s->from);
            }
        }
}

void conv_winograd_pack(const struct conv *c, enum conv_winograd m, bool turned,
                        struct conv_share share, const float *w, float *u)
{
    struct sizes s = sizes_of(c, m, turned);
    struct range panels = range_of(share, s.to / TILE_COLUMNS);
    double piece = trace_begin();

    turned ? pack_turned(&s, panels, w, u) : pack_forward(&s, panels, w, u);
    trace_part(piece, TRACE_IM2COL);
}

/* A tile's place: rows of tiles count through the whole batch. */
struct place {
    size_t image, y, x; /* of its first output */
};

static struct place place_of(const struct sizes *s, size_t row, size_t tile)
{
    size_t m = (size_t)s->m;
    return (struct place){row / s->tiles, row % s->tiles * m, tile * m};
}

/* The pixels of a window of `size` at (y, x), which may begin at -1; `edge` stands for those
 * outside. */
static void find_pixels(const struct sizes *s, size_t image, ptrdiff_t y, ptrdiff_t x, int size,
                        const float *base, size_t channels, const float *edge, const float **pixels)
{
    ptrdiff_t side = (ptrdiff_t)s->side;

    for (ptrdiff_t i = y; i < y + size; i++) {
        const float *line = base + (image * s->side + (size_t)i) * s->side * channels;
        bool outside = i < 0 || i >= side;
        for (ptrdiff_t j = x; j < x + size; j++)
            *pixels++ = outside || j < 0 || j >= side ? edge : line + j * (ptrdiff_t)channels;
    }
}

/* Some rows of a group of tiles, which begins at row `base` of the batch. */
struct rows {
    size_t base, first, end;
};

static void transform_inputs(const struct sizes *s, const float *x, struct rows r,
                             const float *zeros, float *v)
{
    const float *pixels[WINOGRAD_POSITIONS_MAX];
    double piece = trace_begin();

    for (size_t t = r.first * s->tiles; t < r.end * s->tiles; t++) {
        struct place p = place_of(s, r.base + t / s->tiles, t % s->tiles);
        find_pixels(s, p.image, (ptrdiff_t)p.y - 1, (ptrdiff_t)p.x - 1, s->m + 2, x, s->from, zeros,
                    pixels);
        winograd_input(s->m, pixels, s->from, v + t * s->from_ld, s->from_step);
    }
    trace_part(piece, TRACE_IM2COL);
}

static void transform_outputs(const struct sizes *s, const float *v, struct rows r, float *unwanted,
                              float *z, bool add)
{
    const float *pixels[WINOGRAD_OUTPUTS_MAX];
    double piece = trace_begin();

    for (size_t t = r.first * s->tiles; t < r.end * s->tiles; t++) {
        struct place p = place_of(s, r.base + t / s->tiles, t % s->tiles);
        find_pixels(s, p.image, (ptrdiff_t)p.y, (ptrdiff_t)p.x, s->m, z, s->to, unwanted, pixels);
        winograd_output(s->m, v + t * s->to_ld, s->to_step, s->to, (float *const *)pixels, add);
    }
    trace_part(piece, TRACE_IM2COL);
}

static void transform_gradients(const struct sizes *s, const float *dz, struct rows r,
                                const float *zeros, float *v)
{
    const float *pixels[WINOGRAD_OUTPUTS_MAX];
    double piece = trace_begin();

    for (size_t t = r.first * s->tiles; t < r.end * s->tiles; t++) {
        struct place p = place_of(s, r.base + t / s->tiles, t % s->tiles);
        find_pixels(s, p.image, (ptrdiff_t)p.y, (ptrdiff_t)p.x, s->m, dz, s->to, zeros, pixels);
        winograd_output_gradient(s->m, pixels, s->to, v + t * s->to_ld, s->to_step);
    }
    trace_part(piece, TRACE_IM2COL);
}

/* The first row of pixels of a row of tiles. */
static size_t first_pixel(const struct sizes *s, size_t row)
{
    return (row / s->tiles * s->side + row % s->tiles * (size_t)s->m) * s->side;
}

/* What the steps work in: transformed inputs, and products or transformed gradients. */
struct work {
    float *inputs, *others, *zeros, *unwanted;
};

static struct work work_at(const struct sizes *s, float *memory)
{
    struct work w = {.inputs = memory, .others = memory + s->positions * s->from_step};

    w.zeros = w.others + s->positions * s->to_step;
    w.unwanted = w.zeros + edge_floats(s);
    return w;
}

void conv_winograd_begin(const struct conv *c, enum conv_winograd m, bool turned, float *work)
{
    struct sizes s = sizes_of(c, m, turned);
    memset(work_at(&s, work).zeros, 0, edge_floats(&s) * sizeof *work);
}

/* A thread's share of one step for the group of tiles that begins at row `base`. */
static struct rows rows_of(const struct sizes *s, size_t base, size_t last, struct conv_share share)
{
    struct range r = range_of(share, last - base < s->rows ? last - base : s->rows);
    return (struct rows){base, r.first, r.end};
}

static void multiply(const struct sizes *s, const struct work *w, const float *u, size_t tiles,
                     struct range positions)
{
    for (size_t i = positions.first; i < positions.end; i++) {
        struct tile_matrix b = {u + i * s->weights_step, s->from, false, true};
        tile_gemm(tiles, s->to, s->from, w->inputs + i * s->from_step, s->from_ld, &b,
                  w->others + i * s->to_step, s->to_ld, false);
    }
}

static void run_step(const struct sizes *s, const struct conv_winograd_pass *p, size_t base,
                     size_t last, enum conv_winograd_step step, struct conv_share share)
{
    struct work w = work_at(s, p->work);
    struct rows r = rows_of(s, base, last, share), all = rows_of(s, base, last, CONV_ALL);

    if (step == CONV_WINOGRAD_TRANSFORM)
        transform_inputs(s, p->from, r, w.zeros, w.inputs);
    if (step == CONV_WINOGRAD_MULTIPLY)
        multiply(s, &w, p->u, all.end * s->tiles, range_of(share, s->positions));
    if (step != CONV_WINOGRAD_BACK || r.first == r.end)
        return;
    transform_outputs(s, w.others, r, w.unwanted, p->to, p->add);
    if (p->done) {
        size_t pixel = first_pixel(s, base + r.first);
        p->done(pixel, first_pixel(s, base + r.end) - pixel, p->context);
    }
}

size_t conv_winograd_groups(const struct conv *c, enum conv_winograd m, size_t images)
{
    struct sizes s = sizes_of(c, m, false);
    return (images * s.tiles + s.rows - 1) / s.rows;
}

void conv_winograd_run_step(const struct conv *c, const struct conv_winograd_pass *p, size_t images,
                            size_t group, enum conv_winograd_step step, struct conv_share share)
{
    struct sizes s = sizes_of(c, p->m, p->turned);
    run_step(&s, p, group * s.rows, images * s.tiles, step, share);
}

void conv_winograd_run(const struct conv *c, const struct conv_winograd_pass *p, size_t first,
                       size_t end)
{
    struct sizes s = sizes_of(c, p->m, p->turned);

    conv_winograd_begin(c, p->m, p->turned, p->work);
    for (size_t row = first * s.tiles; row < end * s.tiles; row += s.rows)
        for (int step = 0; step < CONV_WINOGRAD_STEPS; step++)
            run_step(&s, p, row, end * s.tiles, (enum conv_winograd_step)step, CONV_ALL);
}

static void sum_step(const struct sizes *s, const struct conv_winograd_sums *p, size_t base,
                     size_t last, enum conv_winograd_step step, struct conv_share share)
{
    struct work w = work_at(s, p->work);
    struct rows r = rows_of(s, base, last, share), all = rows_of(s, base, last, CONV_ALL);
    struct range positions = range_of(share, s->positions);

    if (step == CONV_WINOGRAD_TRANSFORM) {
        transform_inputs(s, p->x, r, w.zeros, w.inputs);
        transform_gradients(s, p->dz, r, w.zeros, w.others);
        return;
    }
    for (size_t i = positions.first; i < positions.end; i++) {
        struct tile_matrix b = {w.others + i * s->to_step, s->to_ld, false, false};
        tile_gemm_transposed(s->from, s->to, all.end * s->tiles, w.inputs + i * s->from_step,
                             s->from_ld, &b, p->sums + i * s->weights_step, s->to, p->add);
    }
}

void conv_winograd_sum_step(const struct conv *c, const struct conv_winograd_sums *p, size_t images,
                            size_t group, enum conv_winograd_step step, struct conv_share share)
{
    struct sizes s = sizes_of(c, p->m, false);
    sum_step(&s, p, group * s.rows, images * s.tiles, step, share);
}

void conv_winograd_sum_weights(const struct conv *c, const struct conv_winograd_sums *p,
                               size_t first, size_t end)
{
    struct sizes s = sizes_of(c, p->m, false);
    struct conv_winograd_sums pass = *p;

    conv_winograd_begin(c, p->m, false, p->work);
    for (size_t row = first * s.tiles; row < end * s.tiles; row += s.rows) {
        sum_step(&s, &pass, row, end * s.tiles, CONV_WINOGRAD_TRANSFORM, CONV_ALL);
        sum_step(&s, &pass, row, end * s.tiles, CONV_WINOGRAD_MULTIPLY, CONV_ALL);
        pass.add = true;
    }
}

void conv_winograd_finish_weights(const struct conv *c, enum conv_winograd m,
                                  struct conv_share share, const float *sums, float *dw, bool add)
{
    struct sizes s = sizes_of(c, m, false);
    struct range channels = range_of(share, s.from);
    double piece = trace_begin();

    for (size_t i = channels.first; i < channels.end; i++)
        winograd_kernel_gradient(s.m, sums + i * s.to, s.weights_step, s.to, dw + i * s.to,
                                 s.from * s.to, add);
    trace_part(piece, TRACE_IM2COL);
}
