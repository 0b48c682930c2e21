#include "worker/layers/conv.h"

#include <string.h>

#include "worker/kernels/gemm.h"
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

/* Measured best: a tile fits the second-level cache, unless its weights do not. */
enum {
    TILE_FLOATS = 512 * 1024 / 4,
    LARGE_TILE_FLOATS = 2048 * 1024 / 4,
    LARGE_WEIGHTS_FLOATS = 512 * 1024 / 4
};

static size_t conv_widest_columns(const struct conv *c)
{
    struct window w = conv_turned_window(c);
    size_t turned =
        conv_turns_kernel(c) ? (size_t)(window_taps(&w) * window_taps(&w) * w.channels) : 0;
    return conv_columns(&c->window) > turned ? conv_columns(&c->window) : turned;
}

static size_t conv_tile_capacity(const struct conv *c)
{
    return conv_weights(c) > LARGE_WEIGHTS_FLOATS ? LARGE_TILE_FLOATS : TILE_FLOATS;
}

static size_t conv_rows_of_tile(const struct conv *c)
{
    size_t widest = conv_widest_columns(c);
    if (widest < (size_t)c->out_channels)
        widest = (size_t)c->out_channels;
    size_t rows = conv_tile_capacity(c) / widest & ~(size_t)15;
    return rows < 16 ? 16 : rows;
}

static size_t conv_winograd_scratch_floats(const struct conv *c)
{
    size_t max = 0;
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            max = size_max(max, conv_winograd_weights_floats(c, c->winograd[i]) +
                                    conv_winograd_work_floats(c, c->winograd[i]));
    return max;
}

size_t conv_scratch_floats(const struct conv *c)
{
    if (c->algorithm == CONV_GROUPED)
        return conv_grouped_scratch_floats(c);
    return size_max(conv_weights(c) + (conv_reads_in_place(c)
                                           ? 0
                                           : conv_rows_of_tile(c) * conv_widest_columns(c)),
                    conv_winograd_scratch_floats(c));
}

struct weights {
    const float *data;
    bool packed;
};

static bool conv_packs(const struct conv *c, size_t rows, size_t n)
{
    return conv_uses_tile(c, n) && rows > conv_rows_of_tile(c);
}

/* z = col W, dcol = dz W^T, dW += col^T dz, over the runs. */
static void conv_multiply_forward(const struct conv *c, struct weights w, const float *col,
                                  size_t rows, float *z)
{
    struct conv_runs runs = conv_weight_runs(c);
    size_t k = conv_columns(&c->window), n = (size_t)c->out_channels;
    for (size_t i = 0; i < runs.count; i++) {
        size_t row = runs.first + i * runs.step;
        struct tile_matrix b = {w.data + row * n, n, false, false};
        if (w.packed)
            b = (struct tile_matrix){w.data + row * tile_columns(), conv_matrix_rows(c), false,
                                     true};
        if (conv_uses_tile(c, n))
            tile_gemm(rows, n, runs.length, col + i * runs.length, k, &b, z, n, i > 0);
        else
            gemm_nn(rows, n, runs.length, col + i * runs.length, k, b.data, n, z, n, i > 0);
    }
}

static void conv_multiply_data(const struct conv *c, struct weights w, const float *dz, size_t rows,
                               float *dcol, bool add)
{
    struct conv_runs runs = conv_weight_runs(c);
    size_t k = conv_columns(&c->window), n = (size_t)c->out_channels;
    for (size_t i = 0; i < runs.count; i++) {
        size_t row = runs.first + i * runs.step;
        struct tile_matrix b = {w.data + row * n, n, true, false};
        if (w.packed)
            b = (struct tile_matrix){w.data + row * n, n, true, true};
        if (conv_uses_tile(c, runs.length))
            tile_gemm(rows, runs.length, n, dz, n, &b, dcol + i * runs.length, k, add);
        else
            gemm_nt(rows, runs.length, n, dz, n, b.data, n, dcol + i * runs.length, k, add);
    }
}

static void conv_multiply_weights(const struct conv *c, const float *col, const float *dz,
                                  size_t rows, float *dw, bool add)
{
    struct conv_runs runs = conv_weight_runs(c);
    size_t k = conv_columns(&c->window), n = (size_t)c->out_channels;
    struct tile_matrix b = {dz, n, false, false};
    for (size_t i = 0; i < runs.count; i++) {
        float *to = dw + (runs.first + i * runs.step) * n;
        if (conv_uses_tile(c, n))
            tile_gemm_transposed(runs.length, n, rows, col + i * runs.length, k, &b, to, n, add);
        else
            gemm_tn(runs.length, n, rows, col + i * runs.length, k, dz, n, to, n, add);
    }
}

/* Images to process together: of tiny ones, as many as a product of all their rows needs. */
static size_t conv_images_at_once(const struct conv *c, int images)
{
    size_t fit = conv_rows_of_tile(c) / conv_pixels_out(c);

    if (conv_by_pixel(c, images))
        return CONV_PIXEL_IMAGES_AT_ONCE;
    if (conv_reads_in_place(c))
        return (size_t)images;
    return fit ? fit : 1;
}

static void conv_forward_by_pixel(const struct conv *c, const float *w, const float *x, float *z,
                                  size_t first, size_t end, float *scratch, conv_rows *done,
                                  void *context)
{
    for (size_t i = first; i < end; i += CONV_PIXEL_IMAGES_AT_ONCE) {
        size_t images = size_min(end - i, CONV_PIXEL_IMAGES_AT_ONCE);
        conv_pixel_forward(c, w, x, z, i, images, scratch);
        conv_call_hook_rows(done, i * conv_pixels_out(c), images * conv_pixels_out(c),
                            (size_t)c->out_channels, context);
    }
}

static struct conv_winograd_pass conv_forward_pass(const struct conv *c, const float *x, float *z,
                                                   float *scratch, conv_rows *done, void *context)
{
    enum conv_winograd m = c->winograd[CONV_FORWARD];
    return (struct conv_winograd_pass){.m = m,
                                       .u = scratch,
                                       .from = x,
                                       .to = z,
                                       .work = scratch + conv_winograd_weights_floats(c, m),
                                       .done = done,
                                       .context = context};
}

static void conv_forward_by_winograd(const struct conv *c, const float *w, const float *x, float *z,
                                     size_t first, size_t end, float *scratch, conv_rows *done,
                                     void *context)
{
    struct conv_winograd_pass p = conv_forward_pass(c, x, z, scratch, done, context);

    conv_winograd_pack(c, p.m, false, PARALLEL_ALL, w, scratch);
    conv_winograd_run(c, &p, first, end);
}

void conv_forward(const struct conv *c, const float *w, const float *x, float *z, int first,
                  int end, float *scratch, conv_rows *done, void *context)
{
    size_t row = (size_t)first * conv_pixels_out(c), last = (size_t)end * conv_pixels_out(c);
    size_t tile = conv_rows_of_tile(c), k = conv_matrix_rows(c), n = (size_t)c->out_channels;
    struct weights weights = {w, conv_packs(c, last - row, n)};
    float *tile_col = scratch + conv_weights(c);

    if (c->algorithm == CONV_GROUPED) {
        conv_grouped_forward(c, w, x, z, (size_t)first, (size_t)end, scratch, done, context);
        return;
    }
    if (c->winograd[CONV_FORWARD]) {
        conv_forward_by_winograd(c, w, x, z, (size_t)first, (size_t)end, scratch, done, context);
        return;
    }
    if (conv_by_pixel(c, end - first)) {
        conv_forward_by_pixel(c, w, x, z, (size_t)first, (size_t)end, scratch, done, context);
        return;
    }
    if (weights.packed) {
        tile_pack(&(struct tile_matrix){w, n, false, false}, k, n, scratch, k);
        weights.data = scratch;
    }
    for (; row < last; row += tile) {
        size_t rows = size_min(last - row, tile);
        const float *col = tile_col;
        if (conv_reads_in_place(c))
            col = x + row * (size_t)c->window.channels;
        else
            im2col(&c->window, x, row, rows, tile_col);
        conv_multiply_forward(c, weights, col, rows, z + row * n);
        conv_call_hook_rows(done, row, rows, n, context);
    }
}

static void conv_backward_tile(const struct conv *c, const struct conv_backward *b,
                               struct weights w, size_t row, size_t rows, bool first_tile)
{
    const float *dz = b->dz + row * (size_t)c->out_channels;
    float *col = b->scratch + conv_weights(c);
    bool add_dw = b->add_dw || !first_tile;

    if (conv_reads_in_place(c)) {
        size_t at = row * (size_t)c->window.channels;
        conv_multiply_weights(c, b->x + at, dz, rows, b->dw, add_dw);
        if (b->dx)
            conv_multiply_data(c, w, dz, rows, b->dx + at, b->add_dx);
        return;
    }
    im2col(&c->window, b->x, row, rows, col);
    conv_multiply_weights(c, col, dz, rows, b->dw, add_dw);
    if (b->dx && !conv_turns_kernel(c)) {
        conv_multiply_data(c, w, dz, rows, col, false);
        col2im(&c->window, col, row, rows, b->dx);
    }
}

static void conv_backward_pixels(const struct conv *c, const struct conv_backward *b, size_t image,
                                 size_t images, bool first_group)
{
    conv_call_hook_rows(b->ready, image * conv_pixels_out(c), images * conv_pixels_out(c),
                        (size_t)c->out_channels, b->context);
    conv_pixel_weights(c, b->x, b->dz, image, images, b->dw, b->add_dw || !first_group);
    if (b->dx)
        conv_pixel_data(c, b->w, b->dz, b->dx, b->add_dx, image, images, b->scratch);
    if (b->dx)
        conv_call_hook_rows(b->done, image * conv_pixels_in(c), images * conv_pixels_in(c),
                            (size_t)c->window.channels, b->context);
}

static void conv_data_by_turned_kernel(const struct conv *c, const struct conv_backward *b,
                                       struct weights w, size_t row, size_t last)
{
    struct window t = conv_turned_window(c);
    size_t k = (size_t)(window_taps(&t) * window_taps(&t) * t.channels),
           ci = (size_t)c->window.channels;
    size_t tile = conv_rows_of_tile(c);
    float *col = b->scratch + conv_weights(c);

    for (; row < last; row += tile) {
        size_t rows = size_min(last - row, tile);
        im2col(&t, b->dz, row, rows, col);
        tile_gemm(rows, ci, k, col, k, &(struct tile_matrix){w.data, k, false, true},
                  b->dx + row * ci, ci, b->add_dx);
        conv_call_hook_rows(b->done, row, rows, ci, b->context);
    }
}

/* A group of images, completed together because windows overlap within an image. */
static void conv_backward_group(const struct conv *c, const struct conv_backward *b,
                                struct weights w, size_t image, size_t images, bool first_group)
{
    size_t out = conv_pixels_out(c), in = conv_pixels_in(c), ch = (size_t)c->window.channels;
    size_t row = image * out, last = (image + images) * out, tile = conv_rows_of_tile(c);
    bool whole = b->dx && !conv_reads_in_place(c), turned = whole && conv_turns_kernel(c);

    if (whole && !turned && !b->add_dx && !dry_run)
        memset(b->dx + image * in * ch, 0, images * in * ch * sizeof *b->dx);
    for (; row < last; row += tile) {
        size_t rows = size_min(last - row, tile);
        conv_call_hook_rows(b->ready, row, rows, (size_t)c->out_channels, b->context);
        conv_backward_tile(c, b, w, row, rows, first_group && row == image * out);
        if (b->dx && conv_reads_in_place(c))
            conv_call_hook_rows(b->done, row, rows, ch, b->context);
    }
    if (turned)
        conv_data_by_turned_kernel(c, b, w, image * out, last);
    else if (whole)
        conv_call_hook_rows(b->done, image * in, images * in, ch, b->context);
}

static struct weights conv_backward_weights(const struct conv *c, const struct conv_backward *b,
                                            int images)
{
    size_t k = conv_matrix_rows(c), n = (size_t)c->out_channels;

    if (!b->dx || conv_by_pixel(c, images))
        return (struct weights){b->w, false};
    if (conv_turns_kernel(c)) {
        conv_pack_turned(c, (struct parallel_range){0, (size_t)c->window.channels / tile_columns()},
                         b->w, b->scratch);
        return (struct weights){b->scratch, true};
    }
    if (!conv_packs(c, (size_t)images * conv_pixels_out(c), k) || conv_weight_runs(c).count > 1)
        return (struct weights){b->w, false};
    tile_pack(&(struct tile_matrix){b->w, n, true, false}, n, k, b->scratch, n);
    return (struct weights){b->scratch, true};
}

static void conv_backward_directly(const struct conv *c, const struct conv_backward *b, int first,
                                   int end)
{
    bool pixels = conv_by_pixel(c, end - first);
    size_t images = conv_images_at_once(c, end - first);
    struct weights w = conv_backward_weights(c, b, end - first);

    if (!pixels && !b->add_dw && window_taps(&c->window) < c->window.kernel && !dry_run)
        memset(b->dw, 0, conv_weights(c) * sizeof *b->dw);
    for (size_t i = (size_t)first; i < (size_t)end; i += images) {
        size_t count = size_min((size_t)end - i, images);
        if (pixels)
            conv_backward_pixels(c, b, i, count, i == (size_t)first);
        else
            conv_backward_group(c, b, w, i, count, i == (size_t)first);
    }
}

static struct conv_winograd_sums conv_sums_pass(const struct conv *c, const struct conv_backward *b)
{
    enum conv_winograd m = c->winograd[CONV_WEIGHTS];
    return (struct conv_winograd_sums){.m = m,
                                       .x = b->x,
                                       .dz = b->dz,
                                       .sums = b->scratch,
                                       .work = b->scratch + conv_winograd_weights_floats(c, m)};
}

static void conv_weights_by_winograd(const struct conv *c, const struct conv_backward *b,
                                     size_t first, size_t end)
{
    struct conv_winograd_sums p = conv_sums_pass(c, b);
    size_t images = conv_winograd_images(c, p.m);

    for (size_t i = first; i < end; i += images) {
        size_t count = size_min(end - i, images);
        conv_call_hook_rows(b->ready, i * conv_pixels_out(c), count * conv_pixels_out(c),
                            (size_t)c->out_channels, b->context);
        p.add = i > first;
        conv_winograd_sum_weights(c, &p, i, i + count);
    }
    conv_winograd_finish_weights(c, p.m, PARALLEL_ALL, p.sums, b->dw, b->add_dw);
}

static struct conv_winograd_pass conv_data_pass(const struct conv *c, const struct conv_backward *b)
{
    enum conv_winograd m = c->winograd[CONV_DATA];
    return (struct conv_winograd_pass){.m = m,
                                       .turned = true,
                                       .add = b->add_dx,
                                       .u = b->scratch,
                                       .from = b->dz,
                                       .to = b->dx,
                                       .work = b->scratch + conv_winograd_weights_floats(c, m),
                                       .done = b->done,
                                       .context = b->context};
}

static void conv_data_by_winograd(const struct conv *c, const struct conv_backward *b, size_t first,
                                  size_t end)
{
    struct conv_winograd_pass p = conv_data_pass(c, b);

    conv_winograd_pack(c, p.m, true, PARALLEL_ALL, b->w, b->scratch);
    conv_winograd_run(c, &p, first, end);
}

/* First the weight gradient, which calls `ready`, then the others. */
static void conv_backward_by_winograd(const struct conv *c, const struct conv_backward *b,
                                      int first, int end)
{
    struct conv_backward weights = *b;

    weights.dx = NULL;
    if (c->winograd[CONV_WEIGHTS])
        conv_weights_by_winograd(c, b, (size_t)first, (size_t)end);
    else
        conv_backward_directly(c, &weights, first, end);
    if (!b->dx)
        return;
    if (c->winograd[CONV_DATA])
        conv_data_by_winograd(c, b, (size_t)first, (size_t)end);
    else
        conv_data_by_turned_kernel(c, b, conv_backward_weights(c, b, 1),
                                   (size_t)first * conv_pixels_out(c),
                                   (size_t)end * conv_pixels_out(c));
}

void conv_backward(const struct conv *c, const struct conv_backward *b, int first, int end)
{
    if (c->algorithm == CONV_GROUPED)
        conv_grouped_backward(c, b, (size_t)first, (size_t)end);
    else if (c->winograd[CONV_WEIGHTS] || c->winograd[CONV_DATA])
        conv_backward_by_winograd(c, b, first, end);
    else
        conv_backward_directly(c, b, first, end);
}

/* ---- teams: z, dx and dw by the way that suits the shape, and the barriers between them */

static void conv_team_pack_forward(const struct conv *c, const float *w,
                                   struct parallel_share share, float *to)
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
        conv_team_pack_forward(c, w, share, memory->team);
        parallel_barrier(share);
    }
    conv_product_team(&p, (size_t)images * conv_pixels_out(c), share);
}

/* ---- CONV_PIXEL: as many images as fill a product, each thread its own */

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
        conv_call_hook_rows(p->done, i * pixels, n * pixels, (size_t)p->c->out_channels,
                            p->context);
    }
}

static size_t conv_team_pixel_grains(int images, struct parallel_share share)
{
    return (size_t)images / (size_t)share.parts / CONV_PIXEL_IMAGES_AT_ONCE;
}

static void conv_team_forward_by_pixel(const struct conv *c, const float *w, const float *x,
                                       float *z, int images, struct parallel_share share,
                                       const struct conv_memory *memory, conv_rows *done,
                                       void *context)
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
        conv_team_forward_by_pixel(c, w, x, z, images, share, memory, done, context);
    else
        conv_team_forward_directly(c, w, x, z, images, share, memory, done, context);
}

/* ---- dx */

static bool conv_team_packs_data(const struct conv *c)
{
    return conv_uses_tile(c, (size_t)c->window.channels);
}

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

/* dx as a product over rows of dz: of a 1x1, or with the rotated kernel. */
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
        conv_call_hook_rows(b->done, i * pixels, n * pixels, (size_t)p->c->window.channels,
                            b->context);
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

/* Call after conv_team_pack_data and a barrier. */
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
        conv_call_hook(g->b->ready, block[i], g->b->context);
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

static void conv_team_weights_by_winograd(const struct conv *c, const struct conv_backward *b,
                                          int images, struct parallel_share share,
                                          const struct conv_memory *memory)
{
    struct conv_winograd_sums sums = {
        .m = c->winograd[CONV_WEIGHTS], .x = b->x, .dz = b->dz, .sums = memory->team};

    conv_winograd_sum_team(c, &sums, images, share);
    conv_winograd_finish_weights(c, sums.m, share, sums.sums, b->dw, b->add_dw);
}

static void conv_team_data_by_winograd(const struct conv *c, const struct conv_backward *b,
                                       int images, struct parallel_share share,
                                       const struct conv_memory *memory)
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
    size_t max = size_max(conv_team_data_floats(c), conv_gathered_floats(c));

    if (conv_reads_in_place(c))
        return max;
    return size_max(max, conv_team_product_floats(c, &c->window, (size_t)c->out_channels));
}

/* dx separate from dw, if not computed row by row with it; with Winograd dw comes first. */
static void conv_team_backward_directly(const struct conv *c, const struct conv_backward *b,
                                        int images, struct parallel_share share,
                                        const struct conv_memory *memory, bool data)
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
        conv_team_weights_by_winograd(c, b, images, share, memory);
    else
        conv_team_backward_directly(c, b, images, share, memory, data);
    if (!b->dx || (data && !c->winograd[CONV_WEIGHTS]))
        return;
    parallel_barrier(share);
    if (data) {
        conv_team_pack_data(c, b->w, images, share, memory->team);
        parallel_barrier(share);
        conv_team_data_directly(c, b, images, share, memory);
    } else {
        conv_team_data_by_winograd(c, b, images, share, memory);
    }
}

/* ---- memory */

size_t conv_team_floats(const struct conv *c, int images, int threads)
{
    size_t max = conv_weights(c);

    if (c->algorithm == CONV_GROUPED)
        return conv_grouped_team_floats(c);
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            max = size_max(max, conv_winograd_team_floats(c, c->winograd[i], images, threads));
    return max;
}

size_t conv_own_floats(const struct conv *c)
{
    size_t sums = conv_sums_floats(), max;

    if (c->algorithm == CONV_GROUPED)
        return conv_grouped_own_floats(c);
    if (conv_may_sum_whole(c))
        sums = size_max(sums, conv_sums_whole_floats(c));
    max = conv_team_tile_own_floats(c) + sums;
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            max = size_max(max, conv_winograd_own_floats(c, c->winograd[i]));
    return max;
}
