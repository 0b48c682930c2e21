#include "worker/layers/conv_winograd.h"

#include <stdint.h>
#include <string.h>

#include "common/net/bf16_grid.h"
#include "common/run/trace.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/kernels/winograd.h"
#include "worker/layers/conv_shape.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

/* PAD: rows or positions a multiple of 4 KiB apart would conflict in the caches. */
enum { PAD = 16 };

/* Measured best: a group of tiles leaves room for the weights in the second-level cache; weights
 * that exceed it are worth reading only for many tiles. */
enum { WORK_BYTES = 1 << 20, LARGE_WEIGHTS_BYTES = 4 << 20, LARGE_WORK_BYTES = 10 << 20 };

enum { TEAM_WORK_BYTES = 1 << 19 };

/* A single thread transforms large weights when it needs them, as many as stay in its cache. */
enum { BLOCK_BYTES = 2 << 20 };

struct sizes {
    int m;     /* of the transforms (kernels/winograd.h) */
    bool half; /* pixels are bf16 */
    size_t positions;
    size_t from, to;           /* channels of a group */
    size_t groups, at_once;    /* groups of channels, and those transformed together */
    size_t block;              /* of `to`, whose weights are transformed together */
    size_t side;               /* pixels */
    size_t tiles;              /* per side */
    size_t full;               /* of these of m outputs, which come first; the others of m - 1 */
    size_t rows;               /* tiles per thread */
    size_t group;              /* tiles processed together */
    size_t from_ld, to_ld;     /* floats per tile at one position */
    size_t from_step, to_step; /* floats per position */
    size_t weights_step;
    size_t group_step; /* floats of the weights of a group of channels, of all positions */
};

static bool conv_winograd_has_large_weights(const struct sizes *s)
{
    return s->groups == 1 && s->positions * s->from * s->to * sizeof(float) > LARGE_WEIGHTS_BYTES;
}

static size_t conv_winograd_group_rows(const struct sizes *s)
{
    size_t tile_bytes = s->positions * (s->from_ld + s->to_ld) * sizeof(float);
    size_t tiles =
        (conv_winograd_has_large_weights(s) ? LARGE_WORK_BYTES : WORK_BYTES) / tile_bytes;

    return tiles < s->tiles ? 1 : tiles / s->tiles;
}

/* Covers a side with the fewest positions: m + 2 for m outputs, with m = 4 also 5 for 3. */
static void conv_winograd_cut_side(struct sizes *s)
{
    size_t m = (size_t)winograd_outputs(s->m), fewest = SIZE_MAX;

    for (size_t small = 0; small < (m == 4 ? m : 1); small++) {
        size_t rest = s->side - size_min(s->side, small * (m - 1)), full = (rest + m - 1) / m;
        size_t positions = full * (m + 2) + small * (m + 1);
        if (positions < fewest) {
            fewest = positions;
            s->full = full;
            s->tiles = full + small;
        }
    }
}

static size_t conv_winograd_block(const struct sizes *s, bool single)
{
    size_t columns = BLOCK_BYTES / sizeof(float) / s->positions / s->from;

    if (!single || !conv_winograd_has_large_weights(s))
        return s->to;
    return size_min(size_max(columns / tile_columns(), 1) * tile_columns(), s->to);
}

static void conv_winograd_set_group(struct sizes *s, size_t tiles)
{
    s->group = tiles;
    s->from_step = tiles * s->from_ld + PAD;
    s->to_step = tiles * s->to_ld + PAD;
}

/* conv_winograd_set_group comes afterwards. */
static void conv_winograd_set_at_once(struct sizes *s, size_t groups)
{
    s->at_once = groups;
    s->from_ld = groups * s->from + PAD;
    s->to_ld = groups * s->block + PAD;
}

static struct sizes winograd_sizes(const struct conv *c, enum conv_winograd m, bool turned,
                                   bool single)
{
    size_t groups = (size_t)c->groups;
    size_t ci = (size_t)c->window.channels / groups, co = (size_t)c->out_channels / groups;
    struct sizes s = {
        .m = (int)m, .from = turned ? co : ci, .to = turned ? ci : co, .groups = groups};

    s.side = (size_t)c->window.out;
    if (m == CONV_WINOGRAD_2 && s.side == 2)
        s.m = WINOGRAD_IMAGE;
    s.positions = (size_t)winograd_positions(s.m);
    conv_winograd_cut_side(&s);
    s.block = conv_winograd_block(&s, single);
    s.weights_step = s.from * s.block + PAD;
    s.group_step = s.positions * s.weights_step;
    conv_winograd_set_at_once(&s, 1);
    s.rows = conv_winograd_group_rows(&s);
    conv_winograd_set_group(&s, s.rows * s.tiles);
    return s;
}

bool conv_winograd_takes(const struct conv *c)
{
    const struct window *w = &c->window;
    return (c->groups == 1 || c->algorithm == CONV_GROUPED) && w->kernel == 3 && w->stride == 1 &&
           w->pad == 1 && tile_gemm_takes((size_t)(w->channels / c->groups)) &&
           tile_gemm_takes((size_t)(c->out_channels / c->groups));
}

/* After the two groups of tiles: a pixel of zeros, and one for unwanted outputs. */
static size_t conv_winograd_edge_floats(const struct sizes *s)
{
    return s->at_once * size_max(s->from, s->to);
}

/* A range of the output channels. */
struct columns {
    size_t first, end;
};

/* Panels (columns / TILE_COLUMNS, from, TILE_COLUMNS) of each position. */
static void winograd_pack_forward(const struct sizes *s, struct columns c, const float *w, float *u)
{
    size_t ld = s->groups * s->to, tap = s->from * ld;

    for (size_t j = c.first; j < c.end; j += TILE_COLUMNS, u += TILE_COLUMNS * s->from)
        for (size_t i = 0; i < s->from; i++)
            winograd_kernel(s->m, w + i * ld + j, (ptrdiff_t)tap, TILE_COLUMNS,
                            u + i * TILE_COLUMNS, s->weights_step);
}

enum { TURN_AT_ONCE = 64 };

/* Blocks of TILE_COLUMNS input by TURN_AT_ONCE output channels, transposed. */
static void winograd_pack_turned(const struct sizes *s, struct columns c, const float *w, float *u)
{
    float block[WINOGRAD_POSITIONS_MAX * TILE_COLUMNS * TURN_AT_ONCE] __attribute__((aligned(64)));
    size_t ld = s->groups * s->from, tap = s->to * ld, step = TILE_COLUMNS * TURN_AT_ONCE;

    for (size_t j = c.first; j < c.end; j += TILE_COLUMNS, u += TILE_COLUMNS * s->from)
        for (size_t k = 0, n; k < s->from; k += n) {
            n = s->from - k < TURN_AT_ONCE ? s->from - k : TURN_AT_ONCE;
            for (size_t i = 0; i < TILE_COLUMNS; i++)
                winograd_kernel(s->m, w + 8 * tap + (j % s->to + i) * ld + j / s->to * s->from + k,
                                -(ptrdiff_t)tap, n, block + i * TURN_AT_ONCE, step);
            for (size_t p = 0; p < s->positions; p++) {
                struct tile_matrix b = {block + p * step, TURN_AT_ONCE, true, false};
                tile_pack(&b, n, TILE_COLUMNS, u + p * s->weights_step + k * TILE_COLUMNS, s->from);
            }
        }
}

/* Packs transformed weights: for the forward direction, or rotated. */
static void conv_winograd_pack(const struct sizes *s, bool turned, struct columns c, const float *w,
                               float *u)
{
    double piece = trace_begin();

    if (dry_run_moves((9 + s->positions) * s->from * (c.end - c.first)))
        return;
    turned ? winograd_pack_turned(s, c, w, u) : winograd_pack_forward(s, c, w, u);
    trace_part(piece, TRACE_IM2COL);
}

/* ---- tiles of a group
 *
 * Tiles are counted by rows over the batch. In a group they stand in the order of their kinds, so
 * that those that have a position are neighbours. */

enum { KINDS = 4 };

/* Rows x columns: m x (m - 1), m x m, (m - 1) x m, (m - 1) x (m - 1) */
static size_t conv_winograd_kind(bool full_rows, bool full_columns)
{
    return full_rows ? full_columns : full_columns ? 2 : 3;
}

struct group {
    size_t base, tiles;
    size_t first[KINDS + 1]; /* of each kind, in the group */
    size_t before[KINDS];    /* tiles of each kind before the group */
};

/* Of the kind, before `tile`. */
static size_t conv_winograd_count_kind(const struct sizes *s, size_t kind, size_t tile)
{
    bool full_rows = kind < 2, full_columns = kind == 1 || kind == 2;
    size_t y = tile / s->tiles % s->tiles, x = tile % s->tiles;
    size_t rows = full_rows ? s->full : s->tiles - s->full;
    size_t columns = full_columns ? s->full : s->tiles - s->full;
    size_t above = full_rows ? size_min(y, s->full) : y - size_min(y, s->full);
    size_t left = full_columns ? size_min(x, s->full) : x - size_min(x, s->full);

    return (tile / s->tiles / s->tiles * rows + above) * columns +
           (full_rows == (y < s->full) ? left : 0);
}

static struct group conv_winograd_group(const struct sizes *s, size_t base, size_t tiles)
{
    struct group g = {.base = base, .tiles = tiles};

    for (size_t k = 0; k < KINDS; k++) {
        g.before[k] = conv_winograd_count_kind(s, k, base);
        g.first[k + 1] = g.first[k] + conv_winograd_count_kind(s, k, base + tiles) - g.before[k];
    }
    return g;
}

/* The tiles of a group that have a position. */
static struct parallel_range conv_winograd_tiles_at(const struct sizes *s, const struct group *g,
                                                    size_t position)
{
    size_t last = (size_t)s->m + 1;
    bool full_rows = position / (last + 1) == last, full_columns = position % (last + 1) == last;

    return (struct parallel_range){g->first[full_columns ? 1 : 0],
                                   g->first[full_rows      ? 2
                                            : full_columns ? 3
                                                           : KINDS]};
}

struct span {
    size_t first, count;
};

static struct span conv_winograd_span(const struct sizes *s, size_t i)
{
    size_t m = (size_t)winograd_outputs(s->m);
    return i < s->full ? (struct span){i * m, m}
                       : (struct span){s->full * m + (i - s->full) * (m - 1), m - 1};
}

struct place {
    struct winograd_tile tile;
    size_t image, row; /* row: in the group */
    struct span y, x;  /* outputs */
};

static struct place conv_winograd_place_of(const struct sizes *s, const struct group *g, size_t t)
{
    size_t tile = g->base + t, y = tile / s->tiles % s->tiles, x = tile % s->tiles;
    size_t kind = conv_winograd_kind(y < s->full, x < s->full);
    struct place p = {.image = tile / s->tiles / s->tiles,
                      .row = g->first[kind] + conv_winograd_count_kind(s, kind, tile) -
                             g->before[kind],
                      .y = conv_winograd_span(s, y),
                      .x = conv_winograd_span(s, x)};

    p.tile = (struct winograd_tile){s->m, (int)p.y.count, (int)p.x.count};
    return p;
}

static size_t conv_winograd_number(const struct sizes *s)
{
    return s->half ? sizeof(bf16) : sizeof(float);
}

/* A tile's outputs or inputs (`size` per side) from a channel on; `edge` stands for those outside
 * the image, and for those of unwanted outputs. */
static void conv_winograd_find_pixels(const struct sizes *s, const struct place *p, int size,
                                      const void *base, size_t channels, size_t channel,
                                      const void *edge, const void **pixels)
{
    size_t number = conv_winograd_number(s), pixel = channels * number;
    int margin = (size - winograd_outputs(s->m)) / 2;

    for (int i = 0; i < size; i++) {
        size_t y = p->y.first + (size_t)(i - margin); /* -1: larger than any */
        const char *line = (const char *)base + channel * number +
                           (p->image * s->side + (y < s->side ? y : 0)) * s->side * pixel;
        for (int j = 0; j < size; j++) {
            size_t x = p->x.first + (size_t)(j - margin);
            *pixels++ = y < s->side && x < s->side ? line + x * pixel : edge;
        }
    }
}

/* Tiles [first, end) of a group */
struct part {
    const struct group *group;
    size_t first, end;
    size_t channel, channels;
    size_t column; /* of the first channel, in the transformed tiles */
};

/* Counts what is read and written for each tile and channel: positions, and pixels. */
static bool conv_winograd_counts_transform(const struct sizes *s, const struct part *r,
                                           size_t pixels)
{
    size_t n = (r->end - r->first) * r->channels;

    s->half ? dry_run_moves_bf16(n * pixels) : dry_run_moves(n * pixels);
    return dry_run_moves(n * s->positions);
}

/* The tiles of a part one after the other. The pixels of the next one are fetched meanwhile: those
 * of a group of channels are far apart, which defeats the hardware prefetchers. */
struct walk {
    const struct sizes *s;
    const struct part *part;
    int size;        /* pixels per side */
    size_t channels; /* of the tensor */
    const void *from, *edge;
    struct place place[2];
    const void *pixels[2][WINOGRAD_POSITIONS_MAX];
};

enum { LINE_BYTES = 64 };

static void conv_winograd_look_at(struct walk *w, size_t t)
{
    const void **pixels = w->pixels[t % 2];

    if (t >= w->part->end)
        return;
    w->place[t % 2] = conv_winograd_place_of(w->s, w->part->group, t);
    conv_winograd_find_pixels(w->s, &w->place[t % 2], w->size, w->from, w->channels,
                              w->part->channel, w->edge, pixels);
    for (int i = 0; w->s->groups > 1 && i < w->size * w->size; i++)
        for (size_t at = 0; at < w->part->channels * conv_winograd_number(w->s); at += LINE_BYTES)
            __builtin_prefetch((const char *)pixels[i] + at);
}

static void conv_winograd_transform_inputs(const struct sizes *s, const void *x, struct part r,
                                           const float *zeros, float *v)
{
    __typeof__(winograd_input) *transform = s->half ? winograd_bf16_input : winograd_input;
    int size = winograd_inputs(s->m);
    struct walk w = {s, &r, size, s->groups * s->from, .from = x, .edge = zeros};
    double piece = trace_begin();

    if (conv_winograd_counts_transform(s, &r, (size_t)(size * size)))
        return;
    conv_winograd_look_at(&w, r.first);
    for (size_t t = r.first; t < r.end; t++) {
        const struct place *p = &w.place[t % 2];
        conv_winograd_look_at(&w, t + 1);
        transform(p->tile, w.pixels[t % 2], r.channels, v + p->row * s->from_ld + r.column,
                  s->from_step);
    }
    trace_part(piece, TRACE_IM2COL);
}

static void conv_winograd_transform_outputs(const struct sizes *s, const float *v, struct part r,
                                            float *unwanted, void *z, bool add)
{
    __typeof__(winograd_output) *transform = s->half ? winograd_bf16_output : winograd_output;
    int size = winograd_outputs(s->m);
    struct walk w = {s, &r, size, s->groups * s->to, .from = z, .edge = unwanted};
    double piece = trace_begin();

    if (conv_winograd_counts_transform(s, &r, (size_t)(size * size)))
        return;
    conv_winograd_look_at(&w, r.first);
    for (size_t t = r.first; t < r.end; t++) {
        const struct place *p = &w.place[t % 2];
        conv_winograd_look_at(&w, t + 1);
        transform(p->tile, v + p->row * s->to_ld + r.column, s->to_step, r.channels,
                  (void *const *)w.pixels[t % 2], add);
    }
    trace_part(piece, TRACE_IM2COL);
}

static void conv_winograd_transform_gradients(const struct sizes *s, const void *dz, struct part r,
                                              const float *zeros, float *v)
{
    __typeof__(winograd_output_gradient) *transform =
        s->half ? winograd_bf16_output_gradient : winograd_output_gradient;
    int size = winograd_outputs(s->m);
    struct walk w = {s, &r, size, s->groups * s->to, .from = dz, .edge = zeros};
    double piece = trace_begin();

    if (conv_winograd_counts_transform(s, &r, (size_t)(size * size)))
        return;
    conv_winograd_look_at(&w, r.first);
    for (size_t t = r.first; t < r.end; t++) {
        const struct place *p = &w.place[t % 2];
        conv_winograd_look_at(&w, t + 1);
        transform(p->tile, w.pixels[t % 2], r.channels, v + p->row * s->to_ld + r.column,
                  s->to_step);
    }
    trace_part(piece, TRACE_IM2COL);
}

/* Of a row of tiles, at its left. */
static size_t conv_winograd_first_pixel(const struct sizes *s, size_t row)
{
    return (row / s->tiles * s->side + conv_winograd_span(s, row % s->tiles).first) * s->side;
}

/* Whole rows of tiles together, otherwise row by row of pixels. */
static void conv_winograd_call_done(const struct sizes *s, const struct part *r, conv_rows *done,
                                    void *context)
{
    size_t tile = r->group->base + r->first, end = r->group->base + r->end;

    while (done && tile < end) {
        size_t row = tile / s->tiles, x = tile % s->tiles, left = end - tile;
        size_t pixel = conv_winograd_first_pixel(s, row);
        if (x == 0 && left >= s->tiles) {
            size_t rows = left / s->tiles;
            conv_call_hook(done,
                           (struct parallel_block){pixel,
                                                   conv_winograd_first_pixel(s, row + rows) - pixel,
                                                   r->channel, r->channels},
                           context);
            tile += rows * s->tiles;
            continue;
        }
        size_t count = size_min(s->tiles - x, left), from = conv_winograd_span(s, x).first;
        size_t to = size_min(conv_winograd_span(s, x + count).first, s->side);
        size_t height = conv_winograd_span(s, row % s->tiles).count;
        for (size_t y = 0; y < height && pixel % (s->side * s->side) / s->side + y < s->side; y++)
            conv_call_hook(done,
                           (struct parallel_block){pixel + y * s->side + from, to - from,
                                                   r->channel, r->channels},
                           context);
        tile += count;
    }
}

struct work {
    float *inputs, *others, *zeros, *unwanted;
};

static struct work conv_winograd_work_at(const struct sizes *s, float *memory)
{
    struct work w = {.inputs = memory, .others = memory + s->positions * s->from_step};

    w.zeros = w.others + s->positions * s->to_step;
    w.unwanted = w.zeros + conv_winograd_edge_floats(s);
    return w;
}

static void conv_winograd_begin(const struct sizes *s, const struct work *w)
{
    if (!dry_run)
        memset(w->zeros, 0, conv_winograd_edge_floats(s) * sizeof *w->zeros);
}

/* ---- shares */

static size_t conv_winograd_image_tiles(const struct sizes *s)
{
    return s->tiles * s->tiles;
}

/* If the weights fit a core's cache and meet enough tiles of a thread to fill register tiles,
 * or there are groups of channels. Otherwise threads share each product. */
static bool conv_winograd_has_own_tiles(const struct sizes *s, int images, int threads)
{
    return s->groups > 1 ||
           (!conv_winograd_has_large_weights(s) &&
            conv_winograd_image_tiles(s) * (size_t)images / (size_t)threads >= 2 * tile_rows());
}

/* The largest of as few equal groups as possible of at most `most`. */
static size_t conv_winograd_even(size_t all, size_t most)
{
    size_t groups = (all + most - 1) / most;
    return (all + groups - 1) / groups;
}

static void conv_winograd_set_own_group(struct sizes *s)
{
    size_t tiles = WORK_BYTES / (s->positions * (s->from_ld + s->to_ld) * sizeof(float));
    conv_winograd_set_group(s, tiles ? tiles : 1);
}

/* As much as the threads' caches hold, because each group costs two barriers; equal sizes. */
static size_t conv_winograd_max_team_tiles(const struct sizes *s, int threads)
{
    size_t bytes = (size_t)threads * TEAM_WORK_BYTES;
    if (bytes < LARGE_WORK_BYTES)
        bytes = conv_winograd_has_large_weights(s)
                    ? LARGE_WORK_BYTES
                    : size_min((size_t)threads * WORK_BYTES, LARGE_WORK_BYTES);
    size_t tiles = bytes / (s->positions * (s->from_ld + s->to_ld) * sizeof(float));
    return tiles ? tiles : 1;
}

static void conv_winograd_set_team_group(struct sizes *s, int images, int threads)
{
    size_t all = conv_winograd_image_tiles(s) * (size_t)images;
    conv_winograd_set_at_once(s, s->groups);
    conv_winograd_set_group(s, conv_winograd_even(all, conv_winograd_max_team_tiles(s, threads)));
}

static size_t conv_winograd_transform_floats(const struct sizes *s)
{
    return s->positions * (s->from_step + s->to_step) + 2 * conv_winograd_edge_floats(s);
}

static size_t conv_winograd_team_floats_of(const struct conv *c, enum conv_winograd m, int images,
                                           int threads)
{
    struct sizes s = winograd_sizes(c, m, false, threads == 1),
                 turned = winograd_sizes(c, m, true, threads == 1);

    if (threads == 1)
        return s.groups * size_max(s.group_step, turned.group_step);
    conv_winograd_set_at_once(&s, s.groups);
    conv_winograd_set_group(&s, size_min(conv_winograd_max_team_tiles(&s, threads),
                                         conv_winograd_image_tiles(&s) * (size_t)images));
    return s.groups * s.group_step + conv_winograd_transform_floats(&s);
}

static size_t conv_winograd_own_floats_of(const struct conv *c, enum conv_winograd m, int threads)
{
    struct sizes s = winograd_sizes(c, m, false, threads == 1),
                 turned = winograd_sizes(c, m, true, threads == 1);

    if (threads == 1)
        return size_max(conv_winograd_transform_floats(&s),
                        conv_winograd_transform_floats(&turned));
    conv_winograd_set_own_group(&s);
    return conv_winograd_has_large_weights(&s) ? conv_winograd_edge_floats(&s)
                                               : conv_winograd_transform_floats(&s);
}

size_t conv_winograd_team_floats(const struct conv *c, int images, int threads)
{
    size_t max = 0;

    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            max = size_max(max, conv_winograd_team_floats_of(c, c->winograd[i], images, threads));
    return max;
}

size_t conv_winograd_own_floats(const struct conv *c, int threads)
{
    size_t max = 0;

    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            max = size_max(max, conv_winograd_own_floats_of(c, c->winograd[i], threads));
    return max;
}

struct product {
    size_t position, group; /* group: of those at once */
    size_t row, rows, column, columns;
};
struct team_pass;
typedef void make_product(const struct team_pass *t, const struct product *p);

struct team_pass {
    const struct sizes *s;
    const struct conv_winograd_pass *p;
    const struct conv_winograd_sums *sums;
    float *u;      /* transformed weights, or their gradient */
    bool add;      /* to the gradient */
    struct work w; /* the team's, except `unwanted` */
    struct group group;
    size_t all;              /* tiles of the batch */
    size_t groups;           /* of channels, before those at once */
    struct columns channels; /* of the outputs of the groups at once: the block */
    make_product *make;
    size_t rows, columns; /* of a group's products; rows: at most */
};

/* A pass has rows of tiles, a sum of channels. */
static struct parallel_range conv_winograd_product_rows(const struct team_pass *t, size_t position)
{
    return t->p ? conv_winograd_tiles_at(t->s, &t->group, position)
                : (struct parallel_range){0, t->rows};
}

static void conv_winograd_products_piece(const struct parallel_piece *piece, void *context)
{
    const struct team_pass *t = context;
    struct parallel_block part[PARALLEL_BLOCKS];
    size_t panels = t->columns / tile_columns(), tiles = (t->rows + tile_rows() - 1) / tile_rows();
    size_t groups = t->s->at_once;
    int parts = parallel_blocks(t->s->positions * groups * panels, tiles,
                                parallel_piece_share(piece), part);

    for (int k = 0; k < parts; k++)
        for (size_t at = part[k].row, end = at + part[k].rows, count; at < end; at += count) {
            size_t position = at / panels / groups, group = at / panels % groups;
            struct parallel_range r = conv_winograd_product_rows(t, position);
            size_t first = (r.end - r.first) * part[k].column / tiles;
            size_t after = (r.end - r.first) * (part[k].column + part[k].columns) / tiles;
            count = size_min(end - at, panels - at % panels);
            t->make(t, &(struct product){position, group, r.first + first, after - first,
                                         at % panels * tile_columns(), count * tile_columns()});
        }
}

static void conv_winograd_take_products(struct team_pass *t, size_t rows, size_t columns,
                                        make_product *make, struct parallel_share share)
{
    t->rows = rows;
    t->columns = columns;
    t->make = make;
    parallel_take(share,
                  t->s->positions * t->s->at_once * columns / tile_columns() / (size_t)share.parts,
                  conv_winograd_products_piece, t);
}

static float *conv_winograd_weights_at(const struct team_pass *t, const struct product *p)
{
    return t->u + (t->groups + p->group) * t->s->group_step + p->position * t->s->weights_step;
}

/* The inputs of a tile, transformed, for the product's group of channels; below, its other operand:
 * the outputs, or in dw their gradients. */
static float *conv_winograd_inputs_at(const struct team_pass *t, const struct product *p,
                                      size_t tile)
{
    const struct sizes *s = t->s;
    return t->w.inputs + p->position * s->from_step + tile * s->from_ld + p->group * s->from;
}

static float *conv_winograd_others_at(const struct team_pass *t, const struct product *p,
                                      size_t tile)
{
    const struct sizes *s = t->s;
    return t->w.others + p->position * s->to_step + tile * s->to_ld + p->group * s->to + p->column;
}

static void winograd_multiply(const struct team_pass *t, const struct product *p)
{
    const struct sizes *s = t->s;
    struct tile_matrix b = {conv_winograd_weights_at(t, p) + p->column * s->from, s->from, false,
                            true};

    tile_gemm(p->rows, p->columns, s->from, conv_winograd_inputs_at(t, p, p->row), s->from_ld, &b,
              conv_winograd_others_at(t, p, p->row), s->to_ld, false);
}

static void conv_winograd_sum_products(const struct team_pass *t, const struct product *p)
{
    const struct sizes *s = t->s;
    struct parallel_range tiles = conv_winograd_tiles_at(s, &t->group, p->position);
    struct tile_matrix b = {conv_winograd_others_at(t, p, tiles.first), s->to_ld, false, false};

    tile_gemm_transposed(p->rows, p->columns, tiles.end - tiles.first,
                         conv_winograd_inputs_at(t, p, tiles.first) + p->row, s->from_ld, &b,
                         conv_winograd_weights_at(t, p) + p->row * s->block + p->column, s->block,
                         t->add);
}

enum { CHANNELS_AT_ONCE = 64 };

static int conv_winograd_tiles_of_piece(const struct team_pass *t, struct columns channels,
                                        const struct parallel_piece *piece,
                                        struct part part[PARALLEL_BLOCKS])
{
    struct parallel_block block[PARALLEL_BLOCKS];
    int count = parallel_matrix(t->group.tiles, t->group.tiles, channels.end - channels.first,
                                CHANNELS_AT_ONCE, parallel_piece_share(piece), block);

    for (int i = 0; i < count; i++)
        part[i] = (struct part){&t->group,
                                block[i].row,
                                block[i].row + block[i].rows,
                                channels.first + block[i].column,
                                block[i].columns,
                                block[i].column};
    return count;
}

static void conv_winograd_inputs_piece(const struct parallel_piece *piece, void *context)
{
    const struct team_pass *t = context;
    struct part part[PARALLEL_BLOCKS];
    size_t first = t->groups * t->s->from;
    struct columns channels = {first, first + t->s->at_once * t->s->from};
    int parts = conv_winograd_tiles_of_piece(t, channels, piece, part);
    const void *x = t->p ? t->p->from : t->sums->x;

    for (int i = 0; i < parts; i++)
        conv_winograd_transform_inputs(t->s, x, part[i], t->w.zeros, t->w.inputs);
}

/* The block's channels of the tensor. */
static struct columns conv_winograd_channels(const struct team_pass *t)
{
    size_t first = t->groups * t->s->to;
    return (struct columns){first + t->channels.first, first + t->channels.end};
}

static void conv_winograd_outputs_piece(const struct parallel_piece *piece, void *context)
{
    const struct team_pass *t = context;
    const struct conv_winograd_pass *p = t->p;
    struct part part[PARALLEL_BLOCKS];
    int parts = conv_winograd_tiles_of_piece(t, conv_winograd_channels(t), piece, part);

    for (int i = 0; i < parts; i++) {
        conv_winograd_transform_outputs(t->s, t->w.others, part[i], t->w.unwanted, p->to, p->add);
        if (t->s->at_once == t->s->groups)
            conv_winograd_call_done(t->s, &part[i], p->done, p->context);
    }
}

static void conv_winograd_gradients_piece(const struct parallel_piece *piece, void *context)
{
    const struct team_pass *t = context;
    struct part part[PARALLEL_BLOCKS];
    int parts = conv_winograd_tiles_of_piece(t, conv_winograd_channels(t), piece, part);

    for (int i = 0; i < parts; i++)
        conv_winograd_transform_gradients(t->s, t->sums->dz, part[i], t->w.zeros, t->w.others);
}

static void conv_winograd_take_tiles(struct team_pass *t, parallel_piece_body *body,
                                     struct parallel_share share)
{
    parallel_take(share, t->group.tiles / (size_t)share.parts, body, t);
}

static void conv_winograd_run_team_group(struct team_pass *t, struct parallel_share share)
{
    conv_winograd_take_tiles(t, conv_winograd_inputs_piece, share);
    parallel_barrier(share);
    conv_winograd_take_products(t, t->group.tiles, t->s->to, winograd_multiply, share);
    parallel_barrier(share);
    conv_winograd_take_tiles(t, conv_winograd_outputs_piece, share);
}

/* The next block of channels; false after the last. All zero before the first. */
static bool conv_winograd_next_block(struct team_pass *t)
{
    const struct sizes *s = t->s;
    size_t all = s->at_once * s->to;

    t->channels.first = t->channels.end;
    t->channels.end = size_min(t->channels.end + s->at_once * s->block, all);
    return t->channels.first < all;
}

/* As conv_winograd_run_team_group, by one thread in its own memory. */
static void conv_winograd_run_own_group(struct team_pass *t)
{
    static const struct parallel_piece all = {PARALLEL_ALL, PARALLEL_ALL, 0};
    const struct sizes *s = t->s;
    struct part part = {&t->group, 0, t->group.tiles, 0, s->groups * s->to, 0};

    for (t->groups = 0; t->groups < s->groups; t->groups += s->at_once) {
        conv_winograd_inputs_piece(&all, t);
        for (t->channels.end = 0; conv_winograd_next_block(t);) {
            if (s->block < s->to)
                conv_winograd_pack(s, t->p->turned, t->channels, t->p->w, t->u);
            t->rows = t->group.tiles;
            t->columns = (t->channels.end - t->channels.first) / s->at_once;
            t->make = winograd_multiply;
            conv_winograd_products_piece(&all, t);
            conv_winograd_outputs_piece(&all, t);
        }
    }
    if (s->at_once < s->groups)
        conv_winograd_call_done(s, &part, t->p->done, t->p->context);
}

static void conv_winograd_own_tiles_piece(const struct parallel_piece *piece, void *context)
{
    struct team_pass t = *(struct team_pass *)context;
    struct parallel_range mine = parallel_range(t.all, parallel_piece_share(piece));

    conv_winograd_begin(t.s, &t.w);
    for (size_t base = mine.first; base < mine.end; base += t.group.tiles) {
        t.group = conv_winograd_group(t.s, base, size_min(mine.end - base, t.s->group));
        conv_winograd_run_own_group(&t);
    }
}

/* Packs a share of all weights. */
static void conv_winograd_pack_share(const struct team_pass *t, struct parallel_share share)
{
    const struct sizes *s = t->s;
    struct parallel_range panels = parallel_range(s->groups * s->to / tile_columns(), share);
    struct columns c = {panels.first * tile_columns(), panels.end * tile_columns()};

    for (size_t end; c.first < c.end; c.first = end) {
        size_t group = c.first / s->to;
        end = size_min(c.end, (group + 1) * s->to);
        conv_winograd_pack(s, t->p->turned, (struct columns){c.first, end}, t->p->w,
                           t->u + group * s->group_step + c.first % s->to * s->from);
    }
}

void conv_winograd_run(const struct conv_part *part, const struct conv_winograd_pass *p)
{
    bool single = conv_part_is_single(part);
    struct sizes s = winograd_sizes(part->c, p->m, p->turned, single);
    s.half = p->half;
    struct parallel_share share = part->share;
    size_t rows = (size_t)part->images * s.tiles;
    struct team_pass t = {.s = &s,
                          .p = p,
                          .u = part->memory->team,
                          .all = conv_winograd_image_tiles(&s) * (size_t)part->images};

    if (s.block == s.to)
        conv_winograd_pack_share(&t, share);
    if (single || conv_winograd_has_own_tiles(&s, part->images, share.parts)) {
        if (single)
            conv_winograd_set_group(&s, conv_winograd_even(rows, s.rows) * s.tiles);
        else
            conv_winograd_set_own_group(&s);
        t.w = conv_winograd_work_at(&s, conv_part_own(part));
        parallel_barrier(share);
        parallel_take(share, t.all / (size_t)share.parts / s.group, conv_winograd_own_tiles_piece,
                      &t);
        return;
    }
    t.channels.end = s.to;
    conv_winograd_set_team_group(&s, part->images, share.parts);
    t.w = conv_winograd_work_at(&s, t.u + s.group_step);
    t.w.unwanted = conv_part_own(part);
    if (share.part == 0)
        conv_winograd_begin(&s, &t.w);
    parallel_barrier(share);
    for (size_t base = 0; base < t.all; base += s.group) {
        t.group = conv_winograd_group(&s, base, size_min(t.all - base, s.group));
        conv_winograd_run_team_group(&t, share);
    }
}

/* Images whose dz a single thread makes ready together: enough tiles to pay for reading all
 * weights. Groups of tiles do not cross their end. */
static size_t conv_winograd_images(const struct sizes *s, int images)
{
    return conv_winograd_even((size_t)images, size_max(s->rows / s->tiles, 1));
}

static void conv_winograd_make_ready(const struct conv *c, const struct team_pass *t, size_t batch)
{
    size_t image_tiles = conv_winograd_image_tiles(t->s), pixels = conv_pixels_out(c);
    size_t base = t->group.base;

    if (base % batch == 0)
        conv_call_hook_rows(t->sums->ready, base / image_tiles * pixels,
                            size_min(batch, t->all - base) / image_tiles * pixels,
                            t->s->groups * t->s->to, t->sums->context);
}

/* Transforms a share of the block's sums back: to dw, or adds. */
static void conv_winograd_finish_weights(const struct team_pass *t, struct parallel_share share,
                                         bool add)
{
    const struct sizes *s = t->s;
    struct parallel_block part[PARALLEL_BLOCKS];
    size_t rows = s->at_once * s->from, ld = s->groups * s->to;
    int parts = parallel_matrix(rows, rows, (t->channels.end - t->channels.first) / s->at_once,
                                tile_columns(), share, part);
    double piece = trace_begin();

    for (int k = 0; k < parts; k++) {
        if (dry_run_moves((s->positions + 9) * part[k].rows * part[k].columns))
            continue;
        for (size_t row = part[k].row; row < part[k].row + part[k].rows; row++) {
            size_t group = t->groups + row / s->from, i = row % s->from;
            winograd_kernel_gradient(
                s->m, t->u + group * s->group_step + i * s->block + part[k].column, s->weights_step,
                part[k].columns,
                t->sums->dw + i * ld + group * s->to + t->channels.first + part[k].column,
                s->from * ld, add);
        }
    }
    trace_part(piece, TRACE_IM2COL);
}

/* A group's tiles, of each block of channels. Blocks' sums give way to the next ones' after each
 * group. */
static void conv_winograd_sum_group(struct team_pass *t, struct parallel_share share)
{
    const struct sizes *s = t->s;
    bool blocks = s->block<s->to, more = t->group.base> 0;

    for (t->groups = 0; t->groups < s->groups; t->groups += s->at_once) {
        conv_winograd_take_tiles(t, conv_winograd_inputs_piece, share);
        for (t->channels.end = 0; conv_winograd_next_block(t);) {
            conv_winograd_take_tiles(t, conv_winograd_gradients_piece, share);
            parallel_barrier(share);
            t->add = more && !blocks;
            conv_winograd_take_products(t, s->from,
                                        (t->channels.end - t->channels.first) / s->at_once,
                                        conv_winograd_sum_products, share);
            parallel_barrier(share);
            if (blocks || t->group.base + t->group.tiles == t->all)
                conv_winograd_finish_weights(t, share, t->sums->add_dw || (more && blocks));
        }
    }
}

void conv_winograd_sum(const struct conv_part *part, const struct conv_winograd_sums *sums)
{
    bool single = conv_part_is_single(part);
    struct sizes s = winograd_sizes(part->c, sums->m, false, single);
    s.half = sums->half;
    struct parallel_share share = part->share;
    struct team_pass t = {.s = &s,
                          .sums = sums,
                          .u = part->memory->team,
                          .all = conv_winograd_image_tiles(&s) * (size_t)part->images};
    size_t batch =
        single ? conv_winograd_images(&s, part->images) * conv_winograd_image_tiles(&s) : t.all;

    if (!single)
        conv_winograd_set_team_group(&s, part->images, share.parts);
    t.w = conv_winograd_work_at(&s, single ? conv_part_own(part) : t.u + s.groups * s.group_step);
    if (share.part == 0)
        conv_winograd_begin(&s, &t.w);
    parallel_barrier(share);
    for (size_t base = 0; base < t.all; base += t.group.tiles) {
        size_t end = size_min(t.all, (base / batch + 1) * batch);
        t.group = conv_winograd_group(&s, base, size_min(end - base, s.group));
        if (single)
            conv_winograd_make_ready(part->c, &t, batch);
        conv_winograd_sum_group(&t, share);
    }
}
