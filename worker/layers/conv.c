#include "worker/layers/conv.h"

#include <string.h>

#include "common/assert_always.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/strassen.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/window.h"
#include "worker/layers/conv_grouped.h"
#include "worker/layers/conv_phases.h"
#include "worker/layers/conv_pixel.h"
#include "worker/layers/conv_product.h"
#include "worker/layers/conv_shape.h"
#include "worker/layers/conv_sums.h"
#include "worker/layers/conv_winograd.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

/* z, dx and dw by the algorithm that suits the shape, and the barriers between them. */

static void conv_check_part(const struct conv_part *p)
{
    const struct conv_memory *m = p->memory;

    if (dry_run) /* may be of more images than there is memory for */
        return;
    assert_always(p->images > 0);
    assert_always(p->share.part < p->share.parts && p->share.parts <= m->threads);
    assert_always(conv_team_floats(p->c, p->images, m->threads) <= m->team_floats);
    assert_always(conv_own_floats(p->c, m->threads) <= m->own_floats);
}

/* Whether packing weights for a product of so many rows pays: a single thread with a single tile
 * reads them once. */
static bool conv_packs(const struct conv_part *part)
{
    const struct conv *c = part->c;

    return !conv_part_is_single(part) || (conv_halves(part) && !dry_run) ||
           (size_t)part->images * conv_pixels_out(c) > conv_tile_rows(c, 0, true);
}

/* To packed panels of (k, n). */
static void conv_pack_halves(const struct conv_part *part, size_t n, size_t k)
{
    if (conv_halves(part))
        strassen_pack(n, k, 0, n / tile_columns() / 2, part->memory->team);
}

/* ---- z */

static void conv_pack_forward(const struct conv *c, const float *w, struct parallel_share share,
                              float *to)
{
    size_t k = conv_matrix_rows(c), n = (size_t)c->out_channels;
    struct parallel_range panels = conv_panels(n, share);
    size_t first = panels.first * tile_columns();

    tile_pack(&(struct tile_matrix){w + first, n, false, false}, k,
              panels.end * tile_columns() - first, to + first * k, k);
}

static void conv_forward_directly(const struct conv_part *part, const float *w, const float *x,
                                  float *z, conv_rows *done, void *context)
{
    const struct conv *c = part->c;
    size_t n = (size_t)c->out_channels, rows = (size_t)part->images * conv_pixels_out(c);
    bool packed = conv_uses_tile(c, n) && conv_packs(part);
    struct conv_product p = {.c = c,
                             .window = c->window,
                             .tile =
                                 conv_part_tile_rows(part, size_max(conv_columns(&c->window), n)),
                             .in_place = conv_reads_in_place(c),
                             .packed = packed,
                             .halved = conv_halves(part),
                             .from = x,
                             .weights = packed ? part->memory->team : w,
                             .to = z,
                             .channels = n,
                             .runs = conv_weight_runs(c),
                             .k_all = conv_matrix_rows(c),
                             .col = conv_part_own(part),
                             .done = done,
                             .context = context};

    if (packed) {
        conv_pack_forward(c, w, part->share, part->memory->team);
        conv_pack_halves(part, n, conv_matrix_rows(c));
        parallel_barrier(part->share);
    }
    conv_product_team(&p, (struct parallel_range){0, rows}, part->share);
}

/* ---- CONV_PIXEL: as many images as fill a product, each thread its own */

struct by_pixel {
    const struct conv_part *part;
    const float *w, *x;
    bool packed;
    float *z;
    const struct conv_backward *b; /* NULL: forward */
    conv_rows *done;
    void *context;
};

/* z of its images, or dx. */
static void conv_pixel_piece(const struct parallel_piece *piece, void *context)
{
    const struct by_pixel *p = context;
    const struct conv_backward *b = p->b;
    const struct conv *c = p->part->c;
    struct parallel_range mine =
        parallel_range((size_t)p->part->images, parallel_piece_share(piece));
    size_t pixels = b ? conv_pixels_in(c) : conv_pixels_out(c);
    size_t channels = (size_t)(b ? c->window.channels : c->out_channels);

    for (size_t i = mine.first, n; i < mine.end; i += n) {
        n = size_min(mine.end - i, CONV_PIXEL_IMAGES_AT_ONCE);
        if (b)
            conv_pixel_data(c, p->w, p->packed, b->dz, b->dx, b->add_dx, i, n);
        else
            conv_pixel_forward(c, p->w, p->packed, p->x, p->z, i, n);
        conv_call_hook_rows(p->done, i * pixels, n * pixels, channels, p->context);
    }
}

static void conv_take_pixels(struct by_pixel *p)
{
    int parts = p->part->share.parts;
    size_t grains = (size_t)p->part->images / (size_t)parts / CONV_PIXEL_IMAGES_AT_ONCE;

    parallel_take(p->part->share, grains, conv_pixel_piece, p);
}

/* A single thread reads the weights of a single pixel once. */
static bool conv_pixel_packs(const struct conv *c, bool single)
{
    return !single || c->window.out > 1;
}

static void conv_forward_by_pixel(const struct conv_part *part, const float *w, const float *x,
                                  float *z, conv_rows *done, void *context)
{
    const struct conv *c = part->c;
    float *team = part->memory->team;
    bool packed = conv_pixel_packs(c, conv_part_is_single(part));
    struct by_pixel p = {part, packed ? team : w, x, packed, z, NULL, done, context};

    if (packed) {
        conv_pixel_pack(c, conv_panels((size_t)c->out_channels, part->share), w, team);
        parallel_barrier(part->share);
    }
    conv_take_pixels(&p);
}

void conv_forward(const struct conv *c, const float *w, const float *x, float *z, int images,
                  struct parallel_share share, const struct conv_memory *memory, conv_rows *done,
                  void *context)
{
    struct conv_part part = {c, images, share, memory};
    enum conv_winograd m = c->winograd[CONV_FORWARD];
    struct conv_winograd_pass pass = {
        .m = m, .w = w, .from = x, .to = z, .done = done, .context = context};

    conv_check_part(&part);
    if (m)
        conv_winograd_run(&part, &pass);
    else if (c->algorithm == CONV_GROUPED)
        conv_grouped_forward(&part, w, x, z, done, context);
    else if (conv_part_by_pixel(&part))
        conv_forward_by_pixel(&part, w, x, z, done, context);
    else
        conv_forward_directly(&part, w, x, z, done, context);
}

/* ---- dx */

/* How dx is computed. PHASES and SCATTER add the taps in different orders, so their last bits
 * differ: a single thread keeps to the latter, so that its runs can be resumed and repeated. */
enum conv_data_way {
    DATA_NONE,    /* not here: not wanted, or by Winograd */
    DATA_PIXEL,   /* CONV_PIXEL */
    DATA_PRODUCT, /* a product over rows of dz: of a 1x1, or with the rotated kernel */
    DATA_PHASES,  /* conv_phases.h */
    DATA_SCATTER  /* im2col matrix dz W^T of a tile, added to dx pixel by pixel (col2im) */
};

struct conv_data {
    enum conv_data_way way;
    bool by_rows; /* dx of a tile follows its dw */
    bool packed;
    const float *weights; /* the team's panels if packed */
};

static enum conv_data_way conv_data_way(const struct conv_part *part, const struct conv_backward *b)
{
    const struct conv *c = part->c;
    bool single = conv_part_is_single(part), own = conv_uses_tile(c, (size_t)c->window.channels);

    if (!b->dx || c->winograd[CONV_DATA])
        return DATA_NONE;
    if (conv_part_by_pixel(part) && !(single && c->winograd[CONV_WEIGHTS]))
        return DATA_PIXEL;
    if (conv_turns_kernel(c) || (conv_reads_in_place(c) && (own || single)))
        return DATA_PRODUCT;
    return single ? DATA_SCATTER : DATA_PHASES;
}

static bool conv_backward_is_by_rows(const struct conv_part *part, bool wants_dx)
{
    const struct conv *c = part->c;

    if (conv_part_is_single(part))
        return conv_reads_in_place(c);
    if (c->algorithm == CONV_GROUPED || c->winograd[CONV_WEIGHTS] || conv_part_by_pixel(part) ||
        !conv_sums_whole(part))
        return false;
    return !wants_dx || (!c->winograd[CONV_DATA] && conv_reads_in_place(c) &&
                         conv_uses_tile(c, (size_t)c->window.channels));
}

bool conv_backward_by_rows(const struct conv *c, int images, struct parallel_share share,
                           const struct conv_memory *memory, bool wants_dx)
{
    return conv_backward_is_by_rows(&(struct conv_part){c, images, share, memory}, wants_dx);
}

static struct conv_data conv_data_of(const struct conv_part *part, const struct conv_backward *b)
{
    const struct conv *c = part->c;
    bool single = conv_part_is_single(part), in_place = conv_reads_in_place(c);
    bool pays = conv_packs(part);
    struct conv_data d = {.way = conv_data_way(part, b)};

    switch (d.way) {
    case DATA_NONE:
        break;
    case DATA_PIXEL:
        d.packed = conv_pixel_packs(c, single);
        break;
    case DATA_PRODUCT:
        d.by_rows = in_place && conv_backward_is_by_rows(part, true);
        d.packed = !in_place || (pays && conv_uses_tile(c, (size_t)c->window.channels));
        break;
    case DATA_PHASES:
        d.packed = conv_uses_tile(c, (size_t)c->window.channels);
        break;
    case DATA_SCATTER:
        d.packed = pays && conv_uses_tile(c, conv_matrix_rows(c)) && conv_weight_runs(c).count == 1;
        break;
    }
    d.weights = d.packed ? part->memory->team : b->w;
    return d;
}

static void conv_pack_data(const struct conv_part *part, const struct conv_data *d, const float *w)
{
    const struct conv *c = part->c;
    float *to = part->memory->team;
    size_t n = (size_t)c->out_channels, ci = (size_t)c->window.channels;
    struct parallel_range panels = conv_panels(ci, part->share);
    size_t first = panels.first * tile_columns(), count = panels.end * tile_columns() - first;

    if (!d->packed)
        return;
    if (d->way == DATA_PIXEL)
        conv_pixel_pack_data(c, panels, w, to);
    else if (d->way == DATA_PHASES)
        conv_phases_pack(c, w, part->share, to);
    else if (d->way == DATA_SCATTER)
        tile_pack(&(struct tile_matrix){w, n, true, false}, n, conv_matrix_rows(c), to, n);
    else if (conv_reads_in_place(c))
        tile_pack(&(struct tile_matrix){w + first * n, n, true, false}, n, count, to + first * n,
                  n);
    else
        conv_pack_turned(c, panels, w, to);
    conv_pack_halves(part, ci, n);
}

/* dx as a product over rows of dz. */
static struct conv_product conv_data_product(const struct conv_part *part,
                                             const struct conv_backward *b,
                                             const struct conv_data *d)
{
    const struct conv *c = part->c;
    struct window t = conv_turned_window(c);
    size_t k = conv_columns(&t), channels = (size_t)c->window.channels;

    return (struct conv_product){
        .c = c,
        .window = t,
        .tile = conv_part_tile_rows(part, size_max(k, channels)),
        .in_place = conv_reads_in_place(c),
        .packed = d->packed,
        .halved = conv_halves(part),
        .transposed = !d->packed,
        .from = b->dz,
        .weights = d->weights,
        .to = b->dx,
        .channels = channels,
        .runs = {1, k, 0, 0},
        .k_all = k,
        .add = b->add_dx,
        .col = conv_part_own(part),
        .done = b->done,
        .context = b->context
    };
}

/* Call after conv_pack_data and a barrier. */
static void conv_data_directly(const struct conv_part *part, const struct conv_backward *b,
                               const struct conv_data *d)
{
    struct parallel_range rows = {0, (size_t)part->images * conv_pixels_in(part->c)};
    struct conv_product p = conv_data_product(part, b, d);
    struct by_pixel pixel = {part, d->weights, NULL, d->packed, NULL, b, b->done, b->context};

    if (d->way == DATA_PIXEL)
        conv_take_pixels(&pixel);
    else if (d->way == DATA_PRODUCT)
        conv_product_team(&p, rows, part->share);
    else
        conv_phases_data(part, b, d->packed ? d->weights : NULL);
}

static void conv_data_by_winograd(const struct conv_part *part, const struct conv_backward *b)
{
    struct conv_winograd_pass pass = {.m = part->c->winograd[CONV_DATA],
                                      .turned = true,
                                      .add = b->add_dx,
                                      .w = b->w,
                                      .from = b->dz,
                                      .to = b->dx,
                                      .done = b->done,
                                      .context = b->context};

    conv_winograd_run(part, &pass);
}

/* ---- both gradients */

enum { READY_CHANNELS = 64, READY_FLOATS = 16 * 1024 };

struct gradients {
    const struct conv_backward *b;
    size_t rows, channels;
};

static void conv_ready_piece(const struct parallel_piece *piece, void *context)
{
    const struct gradients *g = context;
    struct parallel_block block[PARALLEL_BLOCKS];
    int blocks = parallel_matrix(g->rows, g->rows, g->channels, READY_CHANNELS,
                                 parallel_piece_share(piece), block);

    for (int i = 0; i < blocks; i++)
        conv_call_hook(g->b->ready, block[i], g->b->context);
}

static void conv_make_ready(const struct conv_part *part, const struct conv_backward *b)
{
    struct gradients g = {b, (size_t)part->images * conv_pixels_out(part->c),
                          (size_t)part->c->out_channels};

    parallel_take(part->share, g.rows * g.channels / (size_t)part->share.parts / READY_FLOATS,
                  conv_ready_piece, &g);
}

static void conv_weights_by_winograd(const struct conv_part *part, const struct conv_backward *b)
{
    struct conv_winograd_sums sums = {.m = part->c->winograd[CONV_WEIGHTS],
                                      .x = b->x,
                                      .dz = b->dz,
                                      .dw = b->dw,
                                      .add_dw = b->add_dw,
                                      .ready = b->ready,
                                      .context = b->context};

    conv_winograd_sum(part, &sums);
}

/* ---- memory */

static size_t conv_product_floats(const struct conv *c, const struct window *w, size_t channels)
{
    size_t widest = size_max(conv_columns(w), channels);
    return conv_tile_rows(c, widest, false) * widest;
}

static size_t conv_data_floats(const struct conv *c)
{
    struct window turned = conv_turned_window(c);

    if (c->winograd[CONV_DATA] ||
        (conv_reads_in_place(c) && conv_uses_tile(c, (size_t)c->window.channels)))
        return 0;
    return conv_turns_kernel(c) ? conv_product_floats(c, &turned, (size_t)c->window.channels)
                                : conv_phases_floats(c);
}

/* Of a thread's own memory: without sums of dw, which others may read while it computes dx. */
static size_t conv_work_floats(const struct conv *c, bool single)
{
    if (single && conv_may_halve(c))
        return strassen_sums_floats((size_t)c->window.channels, HALVED_ROWS);
    if (single)
        return conv_reads_in_place(c) ? 0 : conv_single_tile_floats(c);
    size_t max = size_max(conv_data_floats(c), conv_gathered_floats(c));
    if (conv_reads_in_place(c))
        return max;
    return size_max(max, conv_product_floats(c, &c->window, (size_t)c->out_channels));
}

size_t conv_team_floats(const struct conv *c, int images, int threads)
{
    size_t direct = c->algorithm == CONV_GROUPED ? conv_grouped_team_floats(c) : conv_weights(c);

    if (threads == 1 && conv_may_halve(c))
        direct = strassen_panels_floats((size_t)c->out_channels, (size_t)c->window.channels);
    return size_max(direct, conv_winograd_team_floats(c, images, threads));
}

size_t conv_own_floats(const struct conv *c, int threads)
{
    size_t sums = 0, direct;

    if (threads > 1)
        sums = conv_sums_floats();
    if (threads > 1 && conv_may_sum_whole(c))
        sums = size_max(sums, conv_sums_whole_floats(c));
    if (c->algorithm == CONV_GROUPED)
        direct = conv_grouped_own_floats(c);
    else
        direct = conv_work_floats(c, threads == 1) + sums;
    return size_max(direct, conv_winograd_own_floats(c, threads));
}

/* ---- backward */

/* dx separate from dw, if not computed row by row with it. */
static void conv_backward_directly(const struct conv_part *part, const struct conv_backward *b,
                                   const struct conv_data *d)
{
    bool by_rows = conv_backward_is_by_rows(part, b->dx != NULL);
    struct conv_blocks s =
        conv_blocks_of(part, conv_work_floats(part->c, conv_part_is_single(part)));
    struct conv_product p = conv_data_product(part, b, d);
    struct conv_sums_data with = {.product = &p};

    conv_pack_data(part, d, b->w);
    if (d->way || !by_rows)
        parallel_barrier(part->share);
    if (d->way && !by_rows)
        conv_data_directly(part, b, d);
    if (s.whole)
        conv_sum_whole(&s, b, (struct parallel_range){0, s.rows}, true, d->by_rows ? &with : NULL);
    else
        conv_sum_blocks(&s, b);
    parallel_barrier(part->share);
    conv_add_sums(&s, b);
}

/* A single thread: as many images as a tile holds, both gradients of them while they are in cache.
 * At least one, because windows overlap within an image; a 1x1's do not. */
static void conv_backward_in_groups(const struct conv_part *part, const struct conv_backward *b,
                                    const struct conv_data *d)
{
    const struct conv *c = part->c;
    size_t all = (size_t)part->images, out = conv_pixels_out(c), in = conv_pixels_in(c);
    size_t channels = (size_t)c->window.channels;
    size_t step = conv_reads_in_place(c) ? all : size_max(conv_tile_rows(c, 0, true) / out, 1);
    bool scatters = d->way == DATA_SCATTER;
    struct conv_blocks s = conv_blocks_of(part, 0);
    struct conv_product p = conv_data_product(part, b, d);
    struct conv_sums_data with = {scatters ? NULL : &p, d->weights, d->packed};

    conv_pack_data(part, d, b->w);
    for (size_t i = 0, n; i < all; i += n) {
        n = size_min(all - i, step);
        struct parallel_range rows = {i * out, (i + n) * out};
        if (scatters && !b->add_dx && !dry_run)
            memset(b->dx + i * in * channels, 0, n * in * channels * sizeof *b->dx);
        conv_sum_whole(&s, b, rows, i == 0, scatters || d->by_rows ? &with : NULL);
        if (scatters)
            conv_call_hook_rows(b->done, i * in, n * in, channels, b->context);
        else if (d->way == DATA_PRODUCT && !d->by_rows)
            conv_product_team(&p, rows, part->share);
    }
}

/* As conv_backward. */
static void conv_backward_of_groups(const struct conv_part *part, const struct conv_backward *b)
{
    const struct conv *c = part->c;
    struct conv_backward direct = *b;

    if (c->winograd[CONV_WEIGHTS]) {
        if (!conv_part_is_single(part))
            conv_make_ready(part, b);
        conv_weights_by_winograd(part, b);
        parallel_barrier(part->share);
        direct.dw = NULL;
        direct.ready = NULL;
    }
    if (c->winograd[CONV_DATA])
        direct.dx = NULL;
    if (direct.dw || direct.dx)
        conv_grouped_backward(part, &direct);
    if (!b->dx || direct.dx)
        return;
    parallel_barrier(part->share);
    conv_data_by_winograd(part, b);
}

/* With Winograd dw comes first, because its sums take the team's memory. */
void conv_backward(const struct conv *c, const struct conv_backward *b, int images,
                   struct parallel_share share, const struct conv_memory *memory)
{
    struct conv_part part = {c, images, share, memory};
    bool single = conv_part_is_single(&part), pixel = conv_part_by_pixel(&part);

    conv_check_part(&part);
    if (c->algorithm == CONV_GROUPED) {
        conv_backward_of_groups(&part, b);
        return;
    }
    struct conv_data d = conv_data_of(&part, b);
    if (single ? pixel && !c->winograd[CONV_WEIGHTS]
               : !conv_backward_is_by_rows(&part, b->dx != NULL))
        conv_make_ready(&part, b);
    if (c->winograd[CONV_WEIGHTS])
        conv_weights_by_winograd(&part, b);
    else if (single && !pixel)
        conv_backward_in_groups(&part, b, &d);
    else
        conv_backward_directly(&part, b, &d);
    if (!b->dx || (d.way && !c->winograd[CONV_WEIGHTS]))
        return;
    parallel_barrier(share);
    if (d.way) {
        conv_pack_data(&part, &d, b->w);
        parallel_barrier(share);
        conv_data_directly(&part, b, &d);
    } else {
        conv_data_by_winograd(&part, b);
    }
}
