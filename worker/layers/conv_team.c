/*
 * A team's passes over a convolution: z, dx and dw by the way that suits it (conv_product.h,
 * conv_phases.h, conv_sums.h; grouped, tiny and Winograd convolutions have files of their own), and
 * the barriers between them.
 */
#include "worker/kernels/tile_gemm.h"
#include "worker/layers/conv.h"
#include "worker/layers/conv_grouped.h"
#include "worker/layers/conv_phases.h"
#include "worker/layers/conv_pixel.h"
#include "worker/layers/conv_sums.h"
#include "worker/layers/conv_winograd.h"
#include "worker/team/parallel.h"

/* ---- z */

static void team_pack_forward(const struct conv *c, const float *w, struct parallel_share share,
                              float *to)
{
    size_t k = conv_matrix_rows(c), n = (size_t)c->out_channels;
    struct parallel_range panels = conv_panels(n, share);
    size_t first = panels.first * tile_columns();

    tile_pack(&(struct tile_matrix){w + first, n, false, false}, k,
              panels.end * tile_columns() - first, to + first * k, k);
}

static void conv_team_forward_directly(const struct conv *c, const float *w, const float *x,
                                       float *z, int images, struct parallel_share share,
                                       const struct conv_memory *memory, conv_rows *done,
                                       void *context)
{
    size_t n = (size_t)c->out_channels;
    bool packed = conv_uses_tile(c, n);
    struct conv_product p = {.c = c,
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
    conv_product_team(&p, (size_t)images * conv_pixels_out(c), share);
}

/* ---- tiny images: as many of them as fill a product, each thread its own */

struct by_pixel {
    const struct conv *c;
    const float *packed, *x;
    float *z;
    const struct conv_backward *b;
    int images;
    conv_rows *done;
    void *context;
};

static void conv_team_forward_pixel_piece(const struct parallel_piece *piece, void *context)
{
    const struct by_pixel *p = context;
    struct parallel_range mine = parallel_range((size_t)p->images, parallel_piece_share(piece));
    size_t pixels = conv_pixels_out(p->c);

    for (size_t i = mine.first, n; i < mine.end; i += n) {
        n = size_min(mine.end - i, CONV_PIXEL_IMAGES_AT_ONCE);
        conv_pixel_forward_packed(p->c, p->packed, p->x, p->z, i, n);
        conv_tell_rows(p->done, i * pixels, n * pixels, (size_t)p->c->out_channels, p->context);
    }
}

static size_t conv_team_pixel_grains(int images, struct parallel_share share)
{
    return (size_t)images / (size_t)share.parts / CONV_PIXEL_IMAGES_AT_ONCE;
}

static void team_forward_by_pixel(const struct conv *c, const float *w, const float *x, float *z,
                                  int images, struct parallel_share share,
                                  const struct conv_memory *memory, conv_rows *done, void *context)
{
    struct by_pixel p = {.c = c,
                         .packed = memory->team,
                         .x = x,
                         .z = z,
                         .images = images,
                         .done = done,
                         .context = context};

    conv_pixel_pack(c, conv_panels((size_t)c->out_channels, share), w, memory->team);
    parallel_barrier(share);
    parallel_take(share, conv_team_pixel_grains(images, share), conv_team_forward_pixel_piece, &p);
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
    else if (conv_by_pixel_in_team(c, images, share.parts))
        team_forward_by_pixel(c, w, x, z, images, share, memory, done, context);
    else
        conv_team_forward_directly(c, w, x, z, images, share, memory, done, context);
}

/* ---- dx */

static bool conv_team_packs_data(const struct conv *c)
{
    return conv_uses_tile(c, (size_t)c->window.channels);
}

/* Weights for dx, as conv_team_data_directly wants them. */
static void conv_team_pack_data(const struct conv *c, const float *w, int images,
                                struct parallel_share share, float *to)
{
    size_t n = (size_t)c->out_channels;
    struct parallel_range panels = conv_panels((size_t)c->window.channels, share);
    size_t first = panels.first * tile_columns(), count = panels.end * tile_columns() - first;

    if (conv_by_pixel_in_team(c, images, share.parts))
        conv_pixel_pack_data(c, panels, w, to);
    else if (conv_reads_in_place(c) && conv_team_packs_data(c))
        tile_pack(&(struct tile_matrix){w + first * n, n, true, false}, n, count, to + first * n,
                  n);
    else if (conv_turns_kernel(c))
        conv_pack_turned(c, panels, w, to);
    else if (conv_team_packs_data(c))
        conv_phases_pack(c, w, share, to);
}

/* dx as a product over rows of dz: of a 1x1, or with the turned kernel. */
static struct conv_product conv_team_data_product(const struct conv *c,
                                                  const struct conv_backward *b,
                                                  const float *packed, float *own)
{
    struct window t = conv_turned_window(c);
    return (struct conv_product){
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

static void conv_team_data_pixel_piece(const struct parallel_piece *piece, void *context)
{
    const struct by_pixel *p = context;
    const struct conv_backward *b = p->b;
    struct parallel_range mine = parallel_range((size_t)p->images, parallel_piece_share(piece));
    size_t pixels = conv_pixels_in(p->c);

    for (size_t i = mine.first, n; i < mine.end; i += n) {
        n = size_min(mine.end - i, CONV_PIXEL_IMAGES_AT_ONCE);
        conv_pixel_data_packed(p->c, p->packed, b->dz, b->dx, b->add_dx, i, n);
        conv_tell_rows(b->done, i * pixels, n * pixels, (size_t)p->c->window.channels, b->context);
    }
}

static void conv_team_data_by_pixel(const struct conv *c, const struct conv_backward *b, int images,
                                    struct parallel_share share, const float *packed)
{
    struct by_pixel p = {.c = c, .packed = packed, .b = b, .images = images};

    parallel_take(share, conv_team_pixel_grains(images, share), conv_team_data_pixel_piece, &p);
}

static bool conv_team_is_product(const struct conv *c)
{
    return (conv_reads_in_place(c) && conv_team_packs_data(c)) || conv_turns_kernel(c);
}

/* After conv_team_pack_data and a barrier. */
static void conv_team_data_directly(const struct conv *c, const struct conv_backward *b, int images,
                                    struct parallel_share share, const struct conv_memory *memory)
{
    float *own = memory->own[share.part];
    struct conv_product p = conv_team_data_product(c, b, memory->team, own);

    if (conv_by_pixel_in_team(c, images, share.parts))
        conv_team_data_by_pixel(c, b, images, share, memory->team);
    else if (conv_team_is_product(c))
        conv_product_team(&p, (size_t)images * conv_pixels_in(c), share);
    else
        conv_phases_data(c, b, images, share, conv_team_packs_data(c) ? memory->team : NULL, own);
}

/* ---- both gradients */

bool conv_backward_by_rows(const struct conv *c, int images, int threads, bool wants_dx)
{
    if (c->algorithm == CONV_GROUPED || c->winograd[CONV_WEIGHTS] ||
        conv_by_pixel_in_team(c, images, threads) || !conv_sums_whole(c, images, threads))
        return false;
    return !wants_dx ||
           (!c->winograd[CONV_DATA] && conv_reads_in_place(c) && conv_team_packs_data(c));
}

enum { READY_CHANNELS = 64, READY_FLOATS = 16 * 1024 };

struct gradients {
    const struct conv *c;
    const struct conv_backward *b;
    size_t rows;
};

static void conv_team_ready_piece(const struct parallel_piece *piece, void *context)
{
    const struct gradients *g = context;
    struct parallel_block block[PARALLEL_BLOCKS];
    int blocks = parallel_matrix(g->rows, g->rows, (size_t)g->c->out_channels, READY_CHANNELS,
                                 parallel_piece_share(piece), block);

    for (int i = 0; i < blocks; i++)
        conv_tell(g->b->ready, block[i], g->b->context);
}

static void conv_team_make_ready(const struct conv *c, const struct conv_backward *b, int images,
                                 struct parallel_share share)
{
    struct gradients g = {c, b, (size_t)images * conv_pixels_out(c)};

    parallel_take(share, g.rows * (size_t)c->out_channels / (size_t)share.parts / READY_FLOATS,
                  conv_team_ready_piece, &g);
}

static void conv_team_weights_directly(const struct conv_blocks *s, const struct conv_backward *b,
                                       struct parallel_share share,
                                       const struct conv_memory *memory, bool by_rows)
{
    struct conv_product data =
        conv_team_data_product(s->c, b, memory->team, memory->own[share.part]);

    if (s->whole)
        conv_sum_whole(s, b, share, memory, by_rows && b->dx ? &data : NULL);
    else
        conv_sum_blocks(s, b, share, memory);
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

static size_t conv_team_product_floats(const struct conv *c, const struct window *w,
                                       size_t channels)
{
    size_t widest = size_max(conv_columns(w), channels);
    return conv_tile_rows(c, widest) * widest;
}

static size_t conv_team_data_floats(const struct conv *c)
{
    struct window turned = conv_turned_window(c);

    if (c->winograd[CONV_DATA] || (conv_reads_in_place(c) && conv_team_packs_data(c)))
        return 0;
    return conv_turns_kernel(c) ? conv_team_product_floats(c, &turned, (size_t)c->window.channels)
                                : conv_phases_floats(c);
}

static size_t conv_team_tile_own_floats(const struct conv *c)
{
    size_t most = size_max(conv_team_data_floats(c), conv_gathered_floats(c));

    if (conv_reads_in_place(c))
        return most;
    return size_max(most, conv_team_product_floats(c, &c->window, (size_t)c->out_channels));
}

/* dx of its own, where it is not made row by row with dw; dw first, if by Winograd. */
static void team_backward_directly(const struct conv *c, const struct conv_backward *b, int images,
                                   struct parallel_share share, const struct conv_memory *memory,
                                   bool data)
{
    bool by_rows = conv_backward_by_rows(c, images, share.parts, b->dx != NULL);
    struct conv_blocks s = conv_blocks_of(c, images, share.parts, conv_team_tile_own_floats(c));

    if (data)
        conv_team_pack_data(c, b->w, images, share, memory->team);
    if (data || !by_rows)
        parallel_barrier(share);
    if (data && !by_rows)
        conv_team_data_directly(c, b, images, share, memory);
    conv_team_weights_directly(&s, b, share, memory, by_rows);
    parallel_barrier(share);
    conv_add_sums(&s, b, share, memory);
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
        conv_team_make_ready(c, b, images, share);
    if (c->winograd[CONV_WEIGHTS])
        team_weights_by_winograd(c, b, images, share, memory);
    else
        team_backward_directly(c, b, images, share, memory, data);
    if (!b->dx || (data && !c->winograd[CONV_WEIGHTS]))
        return;
    parallel_barrier(share);
    if (data) {
        conv_team_pack_data(c, b->w, images, share, memory->team);
        parallel_barrier(share);
        conv_team_data_directly(c, b, images, share, memory);
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
            most = size_max(most, conv_winograd_team_floats(c, c->winograd[i], images, threads));
    return most;
}

size_t conv_own_floats(const struct conv *c)
{
    size_t sums = conv_sums_floats(), most;

    if (c->algorithm == CONV_GROUPED)
        return conv_grouped_own_floats(c);
    if (conv_may_sum_whole(c))
        sums = size_max(sums, conv_sums_whole_floats(c));
    most = conv_team_tile_own_floats(c) + sums;
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            most = size_max(most, conv_winograd_own_floats(c, c->winograd[i]));
    return most;
}
