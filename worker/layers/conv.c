#include "worker/layers/conv.h"

#include <string.h>

#include "worker/kernels/gemm.h"
#include "worker/kernels/im2col.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/layers/conv_grouped.h"
#include "worker/layers/conv_pixel.h"
#include "worker/layers/conv_winograd.h"

/* Measured best: a tile fits the second-level cache, unless its weights, which are read once a
 * tile, do not. */
enum {
    TILE_FLOATS = 512 * 1024 / 4,
    LARGE_TILE_FLOATS = 2048 * 1024 / 4,
    LARGE_WEIGHTS_FLOATS = 512 * 1024 / 4
};

/* CONV_PIXEL: images of this height at most, and as many of them as fill a product. */
enum { PIXEL_SIZE = 4, PIXEL_IMAGES = 48, PIXEL_IMAGES_AT_ONCE = 256 };

struct conv conv_make(int in_size, int in_channels, int out_channels, int kernel, int stride,
                      int pad, int groups)
{
    struct conv c = {window_make(in_size, in_channels, kernel, stride, pad),
                     out_channels,
                     groups,
                     CONV_GROUPED,
                     {CONV_NO_WINOGRAD}};

    conv_choose_gemm(&c, JOB_GEMM_AUTO);
    return c;
}

static bool is_own(enum job_gemm gemm)
{
    return gemm == JOB_GEMM_AUTO ? TILE_GEMM_PAYS : gemm == JOB_GEMM_OWN;
}

const char *conv_gemm_name(enum job_gemm gemm)
{
    return is_own(gemm) ? "own" : "openblas";
}

void conv_choose_gemm(struct conv *c, enum job_gemm gemm)
{
    const struct window *w = &c->window;
    bool fits = tile_gemm_takes((size_t)w->channels) && tile_gemm_takes((size_t)c->out_channels);

    if (c->groups > 1)
        return;
    if (gemm == JOB_GEMM_OPENBLAS)
        memset(c->winograd, 0, sizeof c->winograd);
    c->algorithm = is_own(gemm) ? CONV_TILE : CONV_OPENBLAS;
    if (is_own(gemm) && fits && w->out <= PIXEL_SIZE && (w->kernel > 1 || w->stride > 1))
        c->algorithm = CONV_PIXEL;
}

static size_t matrix_rows(const struct conv *c)
{
    const struct window *w = &c->window;
    return (size_t)w->kernel * (size_t)w->kernel * (size_t)(w->channels / c->groups);
}

size_t conv_weights(const struct conv *c)
{
    return matrix_rows(c) * (size_t)c->out_channels;
}

/*
 * The input gradient of a stride-1 convolution is a convolution too: of dz, with the kernel turned
 * by 180 degrees and the channels swapped (Dumoulin and Visin, arXiv:1603.07285, section 4). That
 * reads where col2im reads, adds and writes.
 */
static bool turns_kernel(const struct conv *c)
{
    return (c->algorithm != CONV_OPENBLAS || c->winograd[CONV_WEIGHTS]) && c->window.stride == 1 &&
           c->window.kernel > 1 && c->window.kernel == 2 * c->window.pad + 1 &&
           tile_gemm_takes((size_t)c->window.channels);
}

/* The window of that convolution, over dz. */
static struct window turned_window(const struct conv *c)
{
    struct window w = c->window;
    w.channels = c->out_channels;
    return w;
}

/* Columns of the im2col matrix: the taps that see pixels. */
static size_t columns(const struct conv *c)
{
    size_t taps = (size_t)window_taps(&c->window);
    return taps * taps * (size_t)c->window.channels;
}

static bool reads_in_place(const struct conv *c)
{
    return c->window.kernel == 1 && c->window.stride == 1;
}

static size_t pixels_out(const struct conv *c)
{
    return (size_t)c->window.out * (size_t)c->window.out;
}

static size_t pixels_in(const struct conv *c)
{
    return (size_t)c->window.in * (size_t)c->window.in;
}

/* Columns of the widest im2col matrix: of x, or of dz. */
static size_t widest_columns(const struct conv *c)
{
    struct window w = turned_window(c);
    size_t turned = turns_kernel(c) ? (size_t)(window_taps(&w) * window_taps(&w) * w.channels) : 0;
    return columns(c) > turned ? columns(c) : turned;
}

static size_t tile_floats(const struct conv *c)
{
    return conv_weights(c) > LARGE_WEIGHTS_FLOATS ? LARGE_TILE_FLOATS : TILE_FLOATS;
}

static size_t tile_rows(const struct conv *c)
{
    size_t widest = widest_columns(c);
    if (widest < (size_t)c->out_channels)
        widest = (size_t)c->out_channels;
    size_t rows = tile_floats(c) / widest & ~(size_t)15;
    return rows < 16 ? 16 : rows;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A pass by Winograd finds its transformed weights (or their gradient) at the beginning of the
 * scratch memory, its tiles behind them. */
static size_t winograd_scratch_floats(const struct conv *c)
{
    size_t most = 0;
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        if (c->winograd[i])
            most = larger(most, conv_winograd_weights_floats(c, c->winograd[i]) +
                                    conv_winograd_work_floats(c, c->winograd[i]));
    return most;
}

size_t conv_scratch_floats(const struct conv *c)
{
    if (c->algorithm == CONV_GROUPED)
        return conv_grouped_scratch_floats(c);
    return larger(conv_weights(c) + (reads_in_place(c) ? 0 : tile_rows(c) * widest_columns(c)),
                  winograd_scratch_floats(c));
}

/*
 * The taps kept are a square in the middle of the kernel; in the weight matrix they are one run of
 * rows for each ky, or a single one when nothing was left out.
 */
struct runs {
    size_t count;
    size_t length;      /* rows of the weight matrix, columns of the im2col matrix */
    size_t first, step; /* row of the weight matrix of run i: first + i * step */
};

static struct runs weight_runs(const struct conv *c)
{
    const struct window *w = &c->window;
    size_t taps = (size_t)window_taps(w), ch = (size_t)w->channels, k = (size_t)w->kernel;
    size_t from = (size_t)w->tap_first;

    if (taps == k)
        return (struct runs){1, k * k * ch, 0, 0};
    return (struct runs){taps, taps * ch, (from * k + from) * ch, k * ch};
}

/* A weight matrix as the products want it: as it is, or packed beforehand when several tiles need
 * it. */
struct weights {
    const float *data;
    bool packed;
};

static bool packs(const struct conv *c, size_t rows, size_t n)
{
    return c->algorithm != CONV_OPENBLAS && tile_gemm_takes(n) && rows > tile_rows(c);
}

/* z = col W, dcol = dz W^T, dW += col^T dz: over the runs. */
static void multiply_forward(const struct conv *c, struct weights w, const float *col, size_t rows,
                             float *z)
{
    struct runs runs = weight_runs(c);
    size_t k = columns(c), n = (size_t)c->out_channels;
    for (size_t i = 0; i < runs.count; i++) {
        size_t row = runs.first + i * runs.step;
        struct tile_matrix b = {w.data + row * n, n, false, false};
        if (w.packed)
            b = (struct tile_matrix){w.data + row * TILE_COLUMNS, matrix_rows(c), false, true};
        if (c->algorithm != CONV_OPENBLAS && tile_gemm_takes(n))
            tile_gemm(rows, n, runs.length, col + i * runs.length, k, &b, z, n, i > 0);
        else
            gemm_nn(rows, n, runs.length, col + i * runs.length, k, b.data, n, z, n, i > 0);
    }
}

static void multiply_data(const struct conv *c, struct weights w, const float *dz, size_t rows,
                          float *dcol, bool add)
{
    struct runs runs = weight_runs(c);
    size_t k = columns(c), n = (size_t)c->out_channels;
    for (size_t i = 0; i < runs.count; i++) {
        size_t row = runs.first + i * runs.step;
        struct tile_matrix b = {w.data + row * n, n, true, false};
        if (w.packed)
            b = (struct tile_matrix){w.data + row * n, n, true, true};
        if (c->algorithm != CONV_OPENBLAS && tile_gemm_takes(runs.length))
            tile_gemm(rows, runs.length, n, dz, n, &b, dcol + i * runs.length, k, add);
        else
            gemm_nt(rows, runs.length, n, dz, n, b.data, n, dcol + i * runs.length, k, add);
    }
}

static void multiply_weights(const struct conv *c, const float *col, const float *dz, size_t rows,
                             float *dw, bool add)
{
    struct runs runs = weight_runs(c);
    size_t k = columns(c), n = (size_t)c->out_channels;
    struct tile_matrix b = {dz, n, false, false};
    for (size_t i = 0; i < runs.count; i++) {
        float *to = dw + (runs.first + i * runs.step) * n;
        if (c->algorithm != CONV_OPENBLAS && tile_gemm_takes(n))
            tile_gemm_transposed(runs.length, n, rows, col + i * runs.length, k, &b, to, n, add);
        else
            gemm_tn(runs.length, n, rows, col + i * runs.length, k, dz, n, to, n, add);
    }
}

static size_t at_most(size_t x, size_t limit)
{
    return x < limit ? x : limit;
}

static bool by_pixel(const struct conv *c, int images)
{
    return c->algorithm == CONV_PIXEL && images >= PIXEL_IMAGES;
}

/* Images that are worked on together: of tiny ones as many as a product of all their rows wants. */
static size_t images_at_once(const struct conv *c, int images)
{
    size_t fit = tile_rows(c) / pixels_out(c);

    if (by_pixel(c, images))
        return PIXEL_IMAGES_AT_ONCE;
    if (reads_in_place(c))
        return (size_t)images;
    return fit ? fit : 1;
}

static void forward_by_pixel(const struct conv *c, const float *w, const float *x, float *z,
                             size_t first, size_t end, float *scratch, conv_rows *done,
                             void *context)
{
    for (size_t i = first; i < end; i += PIXEL_IMAGES_AT_ONCE) {
        size_t images = at_most(end - i, PIXEL_IMAGES_AT_ONCE);
        conv_pixel_forward(c, w, x, z, i, images, scratch);
        if (done)
            done(i * pixels_out(c), images * pixels_out(c), context);
    }
}

static struct conv_winograd_pass forward_pass(const struct conv *c, const float *x, float *z,
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

static void forward_by_winograd(const struct conv *c, const float *w, const float *x, float *z,
                                size_t first, size_t end, float *scratch, conv_rows *done,
                                void *context)
{
    struct conv_winograd_pass p = forward_pass(c, x, z, scratch, done, context);

    conv_winograd_pack(c, p.m, false, CONV_ALL, w, scratch);
    conv_winograd_run(c, &p, first, end);
}

void conv_forward(const struct conv *c, const float *w, const float *x, float *z, int first,
                  int end, float *scratch, conv_rows *done, void *context)
{
    size_t row = (size_t)first * pixels_out(c), last = (size_t)end * pixels_out(c);
    size_t tile = tile_rows(c), k = matrix_rows(c), n = (size_t)c->out_channels;
    struct weights weights = {w, packs(c, last - row, n)};
    float *tile_col = scratch + conv_weights(c);

    if (c->algorithm == CONV_GROUPED) {
        conv_grouped_forward(c, w, x, z, (size_t)first, (size_t)end, scratch, done, context);
        return;
    }
    if (c->winograd[CONV_FORWARD]) {
        forward_by_winograd(c, w, x, z, (size_t)first, (size_t)end, scratch, done, context);
        return;
    }
    if (by_pixel(c, end - first)) {
        forward_by_pixel(c, w, x, z, (size_t)first, (size_t)end, scratch, done, context);
        return;
    }
    if (weights.packed) {
        tile_pack(&(struct tile_matrix){w, n, false, false}, k, n, scratch, k);
        weights.data = scratch;
    }
    for (; row < last; row += tile) {
        size_t rows = at_most(last - row, tile);
        const float *col = tile_col;
        if (reads_in_place(c))
            col = x + row * (size_t)c->window.channels;
        else
            im2col(&c->window, x, row, rows, tile_col);
        multiply_forward(c, weights, col, rows, z + row * n);
        if (done)
            done(row, rows, context);
    }
}

/* A tile's rows of dz are in cache. */
static void backward_tile(const struct conv *c, const struct conv_backward *b, struct weights w,
                          size_t row, size_t rows, bool first_tile)
{
    const float *dz = b->dz + row * (size_t)c->out_channels;
    float *col = b->scratch + conv_weights(c);
    bool add_dw = b->add_dw || !first_tile;

    if (reads_in_place(c)) {
        size_t at = row * (size_t)c->window.channels;
        multiply_weights(c, b->x + at, dz, rows, b->dw, add_dw);
        if (b->dx)
            multiply_data(c, w, dz, rows, b->dx + at, b->add_dx);
        return;
    }
    im2col(&c->window, b->x, row, rows, col);
    multiply_weights(c, col, dz, rows, b->dw, add_dw);
    if (b->dx && !turns_kernel(c)) {
        multiply_data(c, w, dz, rows, col, false);
        col2im(&c->window, col, row, rows, b->dx);
    }
}

static void backward_pixels(const struct conv *c, const struct conv_backward *b, size_t image,
                            size_t images, bool first_group)
{
    if (b->ready)
        b->ready(image * pixels_out(c), images * pixels_out(c), b->context);
    conv_pixel_weights(c, b->x, b->dz, image, images, b->dw, b->add_dw || !first_group);
    if (b->dx)
        conv_pixel_data(c, b->w, b->dz, b->dx, b->add_dx, image, images, b->scratch);
    if (b->dx && b->done)
        b->done(image * pixels_in(c), images * pixels_in(c), b->context);
}

/* The turned kernel as panels: rows (ky, kx, c_out), columns c_in. */
static void pack_turned(const struct conv *c, const float *w, float *panels)
{
    struct window t = turned_window(c);
    size_t ci = (size_t)c->window.channels, co = (size_t)c->out_channels;
    int taps = window_taps(&t), kernel = t.kernel;

    for (int i = 0; i < taps * taps; i++) {
        int ky = kernel - 1 - (t.tap_first + i / taps), kx = kernel - 1 - (t.tap_first + i % taps);
        struct tile_matrix tap = {w + (size_t)(ky * kernel + kx) * ci * co, co, true, false};
        tile_pack(&tap, co, ci, panels + (size_t)i * co * TILE_COLUMNS, (size_t)(taps * taps) * co);
    }
}

/* dx of a group of images whose dz is ready. */
static void data_by_turned_kernel(const struct conv *c, const struct conv_backward *b,
                                  struct weights w, size_t row, size_t last)
{
    struct window t = turned_window(c);
    size_t k = (size_t)(window_taps(&t) * window_taps(&t) * t.channels),
           ci = (size_t)c->window.channels;
    size_t tile = tile_rows(c);
    float *col = b->scratch + conv_weights(c);

    for (; row < last; row += tile) {
        size_t rows = at_most(last - row, tile);
        im2col(&t, b->dz, row, rows, col);
        tile_gemm(rows, ci, k, col, k, &(struct tile_matrix){w.data, k, false, true},
                  b->dx + row * ci, ci, b->add_dx);
        if (b->done)
            b->done(row, rows, b->context);
    }
}

/* A group of images is finished together, because windows overlap within one. */
static void backward_group(const struct conv *c, const struct conv_backward *b, struct weights w,
                           size_t image, size_t images, bool first_group)
{
    size_t out = pixels_out(c), in = pixels_in(c), ch = (size_t)c->window.channels;
    size_t row = image * out, last = (image + images) * out, tile = tile_rows(c);
    bool whole = b->dx && !reads_in_place(c), turned = whole && turns_kernel(c);

    if (whole && !turned && !b->add_dx)
        memset(b->dx + image * in * ch, 0, images * in * ch * sizeof *b->dx);
    for (; row < last; row += tile) {
        size_t rows = at_most(last - row, tile);
        if (b->ready)
            b->ready(row, rows, b->context);
        backward_tile(c, b, w, row, rows, first_group && row == image * out);
        if (b->dx && b->done && reads_in_place(c))
            b->done(row, rows, b->context);
    }
    if (turned)
        data_by_turned_kernel(c, b, w, image * out, last);
    else if (whole && b->done)
        b->done(image * in, images * in, b->context);
}

/* What the products with the weights will read: packed once if many tiles need it. */
static struct weights backward_weights(const struct conv *c, const struct conv_backward *b,
                                       int images)
{
    size_t k = matrix_rows(c), n = (size_t)c->out_channels;

    if (!b->dx || by_pixel(c, images))
        return (struct weights){b->w, false};
    if (turns_kernel(c)) {
        pack_turned(c, b->w, b->scratch);
        return (struct weights){b->scratch, true};
    }
    if (!packs(c, (size_t)images * pixels_out(c), k) || weight_runs(c).count > 1)
        return (struct weights){b->w, false};
    tile_pack(&(struct tile_matrix){b->w, n, true, false}, n, k, b->scratch, n);
    return (struct weights){b->scratch, true};
}

static void backward_directly(const struct conv *c, const struct conv_backward *b, int first,
                              int end)
{
    bool pixels = by_pixel(c, end - first);
    size_t images = images_at_once(c, end - first);
    struct weights w = backward_weights(c, b, end - first);

    if (!pixels && !b->add_dw && window_taps(&c->window) < c->window.kernel)
        memset(b->dw, 0, conv_weights(c) * sizeof *b->dw);
    for (size_t i = (size_t)first; i < (size_t)end; i += images) {
        size_t count = at_most((size_t)end - i, images);
        if (pixels)
            backward_pixels(c, b, i, count, i == (size_t)first);
        else
            backward_group(c, b, w, i, count, i == (size_t)first);
    }
}

static struct conv_winograd_sums sums_pass(const struct conv *c, const struct conv_backward *b)
{
    enum conv_winograd m = c->winograd[CONV_WEIGHTS];
    return (struct conv_winograd_sums){.m = m,
                                       .x = b->x,
                                       .dz = b->dz,
                                       .sums = b->scratch,
                                       .work = b->scratch + conv_winograd_weights_floats(c, m)};
}

static void weights_by_winograd(const struct conv *c, const struct conv_backward *b, size_t first,
                                size_t end)
{
    struct conv_winograd_sums p = sums_pass(c, b);
    size_t images = conv_winograd_images(c, p.m);

    for (size_t i = first; i < end; i += images) {
        size_t count = at_most(end - i, images);
        if (b->ready)
            b->ready(i * pixels_out(c), count * pixels_out(c), b->context);
        p.add = i > first;
        conv_winograd_sum_weights(c, &p, i, i + count);
    }
    conv_winograd_finish_weights(c, p.m, CONV_ALL, p.sums, b->dw, b->add_dw);
}

static struct conv_winograd_pass data_pass(const struct conv *c, const struct conv_backward *b)
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

static void data_by_winograd(const struct conv *c, const struct conv_backward *b, size_t first,
                             size_t end)
{
    struct conv_winograd_pass p = data_pass(c, b);

    conv_winograd_pack(c, p.m, true, CONV_ALL, b->w, b->scratch);
    conv_winograd_run(c, &p, first, end);
}

/* One gradient after the other: of the weights first, which calls `ready`. */
static void backward_by_winograd(const struct conv *c, const struct conv_backward *b, int first,
                                 int end)
{
    struct conv_backward weights = *b;

    weights.dx = NULL;
    if (c->winograd[CONV_WEIGHTS])
        weights_by_winograd(c, b, (size_t)first, (size_t)end);
    else
        backward_directly(c, &weights, first, end);
    if (!b->dx)
        return;
    if (c->winograd[CONV_DATA])
        data_by_winograd(c, b, (size_t)first, (size_t)end);
    else
        data_by_turned_kernel(c, b, backward_weights(c, b, 1), (size_t)first * pixels_out(c),
                              (size_t)end * pixels_out(c));
}

void conv_backward(const struct conv *c, const struct conv_backward *b, int first, int end)
{
    if (c->algorithm == CONV_GROUPED)
        conv_grouped_backward(c, b, (size_t)first, (size_t)end);
    else if (c->winograd[CONV_WEIGHTS] || c->winograd[CONV_DATA])
        backward_by_winograd(c, b, first, end);
    else
        backward_directly(c, b, first, end);
}

static bool shares(const struct conv *c, enum conv_direction direction)
{
    enum conv_winograd m = c->winograd[direction];
    return m && conv_winograd_has_large_weights(c, m);
}

static int groups_of(const struct conv *c, enum conv_direction direction, int images)
{
    return (int)conv_winograd_groups(c, c->winograd[direction], (size_t)images);
}

/* Packing; then three steps a group. */
int conv_forward_stages(const struct conv *c, int images)
{
    return shares(c, CONV_FORWARD) ? 1 + CONV_WINOGRAD_STEPS * groups_of(c, CONV_FORWARD, images)
                                   : 0;
}

enum { SUM_STEPS = 2 };

/* dz; two steps a group, and the sums' end; packing, and three steps a group. */
int conv_backward_stages(const struct conv *c, int images, bool wants_dx)
{
    if (!shares(c, CONV_WEIGHTS) || (wants_dx && !shares(c, CONV_DATA)))
        return 0;
    int sums = 2 + SUM_STEPS * groups_of(c, CONV_WEIGHTS, images);
    return wants_dx ? sums + 1 + CONV_WINOGRAD_STEPS * groups_of(c, CONV_DATA, images) : sums;
}

static void pass_stage(const struct conv *c, const struct conv_winograd_pass *p, const float *w,
                       float *u, int images, int stage, struct conv_share share)
{
    if (stage == 0) {
        if (share.part == 0)
            conv_winograd_begin(c, p->m, p->turned, p->work);
        conv_winograd_pack(c, p->m, p->turned, share, w, u);
        return;
    }
    stage--;
    conv_winograd_run_step(c, p, (size_t)images, (size_t)(stage / CONV_WINOGRAD_STEPS),
                           (enum conv_winograd_step)(stage % CONV_WINOGRAD_STEPS), share);
}

void conv_forward_stage(const struct conv *c, const float *w, const float *x, float *z, int images,
                        int stage, struct conv_share share, float *scratch, conv_rows *done,
                        void *context)
{
    struct conv_winograd_pass p = forward_pass(c, x, z, scratch, done, context);
    pass_stage(c, &p, w, scratch, images, stage, share);
}

static void make_ready(const struct conv *c, const struct conv_backward *b, int images,
                       struct conv_share share)
{
    size_t first = (size_t)(images * share.part / share.parts) * pixels_out(c);
    size_t end = (size_t)(images * (share.part + 1) / share.parts) * pixels_out(c);

    if (b->ready && first < end)
        b->ready(first, end - first, b->context);
}

void conv_backward_stage(const struct conv *c, const struct conv_backward *b, int images, int stage,
                         struct conv_share share)
{
    struct conv_winograd_sums p = sums_pass(c, b);
    int sums = SUM_STEPS * groups_of(c, CONV_WEIGHTS, images), group = (stage - 1) / SUM_STEPS;

    if (stage == 0) {
        if (share.part == 0)
            conv_winograd_begin(c, p.m, false, p.work);
        make_ready(c, b, images, share);
    } else if (stage <= sums) {
        p.add = group > 0;
        conv_winograd_sum_step(c, &p, (size_t)images, (size_t)group,
                               (enum conv_winograd_step)((stage - 1) % SUM_STEPS), share);
    } else if (stage == sums + 1) {
        conv_winograd_finish_weights(c, p.m, share, p.sums, b->dw, b->add_dw);
    } else {
        struct conv_winograd_pass data = data_pass(c, b);
        pass_stage(c, &data, b->w, b->scratch, images, stage - sums - 2, share);
    }
}
