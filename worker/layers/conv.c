#include "worker/layers/conv.h"

#include <string.h>

#include "worker/kernels/gemm.h"
#include "worker/kernels/im2col.h"

/* Measured best for tiles that go through GEMM once: it need not fit the second-level cache. */
enum { TILE_FLOATS = 2 * 1024 * 1024 / 4 };

struct conv conv_make(int in_size, int in_channels, int out_channels, int kernel, int stride, int pad)
{
    return (struct conv){window_make(in_size, in_channels, kernel, stride, pad), out_channels};
}

size_t conv_weights(const struct conv *c)
{
    const struct window *w = &c->window;
    return (size_t)w->kernel * (size_t)w->kernel * (size_t)w->channels * (size_t)c->out_channels;
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

static size_t tile_rows(const struct conv *c)
{
    size_t widest = columns(c) > (size_t)c->out_channels ? columns(c) : (size_t)c->out_channels;
    size_t rows = TILE_FLOATS / widest & ~(size_t)15;
    return rows < 16 ? 16 : rows;
}

size_t conv_scratch_floats(const struct conv *c)
{
    return reads_in_place(c) ? 0 : tile_rows(c) * columns(c);
}

/*
 * The taps kept are a square in the middle of the kernel; in the weight matrix they are one run of rows for each ky, or a single one when
 * nothing was left out.
 */
struct runs {
    size_t count;
    size_t length;       /* rows of the weight matrix, columns of the im2col matrix */
    size_t first, step;  /* row of the weight matrix of run i: first + i * step */
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

/* z = col W, dcol = dz W^T, dW += col^T dz: over the runs. */
static void multiply_forward(const struct conv *c, const float *w, const float *col, size_t rows,
                             float *z)
{
    struct runs runs = weight_runs(c);
    size_t k = columns(c), n = (size_t)c->out_channels;
    for (size_t i = 0; i < runs.count; i++)
        gemm_nn(rows, n, runs.length, col + i * runs.length, k, w + (runs.first + i * runs.step) * n,
                n, z, n, i > 0);
}

static void multiply_data(const struct conv *c, const float *w, const float *dz, size_t rows,
                          float *dcol, bool add)
{
    struct runs runs = weight_runs(c);
    size_t k = columns(c), n = (size_t)c->out_channels;
    for (size_t i = 0; i < runs.count; i++)
        gemm_nt(rows, runs.length, n, dz, n, w + (runs.first + i * runs.step) * n, n,
                dcol + i * runs.length, k, add);
}

static void multiply_weights(const struct conv *c, const float *col, const float *dz, size_t rows,
                             float *dw, bool add)
{
    struct runs runs = weight_runs(c);
    size_t k = columns(c), n = (size_t)c->out_channels;
    for (size_t i = 0; i < runs.count; i++)
        gemm_tn(runs.length, n, rows, col + i * runs.length, k, dz, n,
                dw + (runs.first + i * runs.step) * n, n, add);
}

static size_t at_most(size_t x, size_t limit)
{
    return x < limit ? x : limit;
}

void conv_forward(const struct conv *c, const float *w, const float *x, float *z, int first, int end,
                  float *scratch, conv_rows *done, void *context)
{
    size_t row = (size_t)first * pixels_out(c), last = (size_t)end * pixels_out(c);
    size_t tile = tile_rows(c);

    for (; row < last; row += tile) {
        size_t rows = at_most(last - row, tile);
        const float *col = scratch;
        if (reads_in_place(c))
            col = x + row * (size_t)c->window.channels;
        else
            im2col(&c->window, x, row, rows, scratch);
        multiply_forward(c, w, col, rows, z + row * (size_t)c->out_channels);
        if (done)
            done(row, rows, context);
    }
}

static void backward_tile(const struct conv *c, const struct conv_backward *b, size_t row,
                          size_t rows, bool first_tile)
{
    const float *dz = b->dz + row * (size_t)c->out_channels;
    bool add_dw = b->add_dw || !first_tile;

    if (reads_in_place(c)) {
        size_t at = row * (size_t)c->window.channels;
        multiply_weights(c, b->x + at, dz, rows, b->dw, add_dw);
        if (b->dx)
            multiply_data(c, b->w, dz, rows, b->dx + at, b->add_dx);
        return;
    }
    im2col(&c->window, b->x, row, rows, b->scratch);
    multiply_weights(c, b->scratch, dz, rows, b->dw, add_dw);
    if (b->dx) {
        multiply_data(c, b->w, dz, rows, b->scratch, false);
        col2im(&c->window, b->scratch, row, rows, b->dx);
    }
}

/* A group of images is finished together, because windows overlap within one. */
static void backward_group(const struct conv *c, const struct conv_backward *b, size_t image,
                           size_t images, bool first_group)
{
    size_t out = pixels_out(c), in = pixels_in(c), ch = (size_t)c->window.channels;
    size_t row = image * out, last = (image + images) * out, tile = tile_rows(c);

    if (b->dx && !b->add_dx && !reads_in_place(c))
        memset(b->dx + image * in * ch, 0, images * in * ch * sizeof *b->dx);
    for (; row < last; row += tile) {
        size_t rows = at_most(last - row, tile);
        if (b->ready)
            b->ready(row, rows, b->context);
        backward_tile(c, b, row, rows, first_group && row == image * out);
        if (b->done && reads_in_place(c))
            b->done(row, rows, b->context);
    }
    if (b->done && !reads_in_place(c))
        b->done(image * in, images * in, b->context);
}

void conv_backward(const struct conv *c, const struct conv_backward *b, int first, int end)
{
    size_t images = tile_rows(c) / pixels_out(c);

    if (images < 1)
        images = 1;
    if (reads_in_place(c))
        images = (size_t)(end - first);
    if (!b->add_dw && window_taps(&c->window) < c->window.kernel)
        memset(b->dw, 0, conv_weights(c) * sizeof *b->dw);
    for (size_t i = (size_t)first; i < (size_t)end; i += images)
        backward_group(c, b, i, at_most((size_t)end - i, images), i == (size_t)first);
}
