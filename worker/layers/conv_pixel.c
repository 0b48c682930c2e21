#include "worker/layers/conv_pixel.h"

#include <string.h>

#include "worker/kernels/tile_gemm.h"
#include "worker/team/dry_run.h"

struct sizes {
    size_t ci, co;              /* channels */
    size_t image_in, image_out; /* floats */
    size_t tap;                 /* floats of one tap's weights */
};

static struct sizes pixel_sizes(const struct conv *c)
{
    const struct window *w = &c->window;
    struct sizes s = {.ci = (size_t)w->channels, .co = (size_t)c->out_channels};
    s.image_in = (size_t)w->in * (size_t)w->in * s.ci;
    s.image_out = (size_t)w->out * (size_t)w->out * s.co;
    s.tap = s.ci * s.co;
    return s;
}

static void pixel_taps_at(const struct window *w, int o, int *from, int *end)
{
    int start = o * w->stride - w->pad;
    *from = start < 0 ? -start : 0;
    *end = start + w->kernel > w->in ? w->in - start : w->kernel;
}

/* One product per kernel row, whose taps are contiguous in image and weights. */
static void conv_pixel_forward_pixel(const struct conv *c, const struct tile_matrix *weights,
                                     const float *x, float *z, int oy, int ox, size_t images)
{
    const struct window *w = &c->window;
    struct sizes s = pixel_sizes(c);
    int ky0, ky1, kx0, kx1;

    pixel_taps_at(w, oy, &ky0, &ky1);
    pixel_taps_at(w, ox, &kx0, &kx1);
    for (int ky = ky0; ky < ky1; ky++) {
        int iy = oy * w->stride - w->pad + ky, ix = ox * w->stride - w->pad + kx0;
        size_t k0 = (size_t)(ky * w->kernel + kx0) * s.ci, k = (size_t)(kx1 - kx0) * s.ci;
        struct tile_matrix b = *weights;
        b.data += b.packed ? k0 * tile_columns() : k0 * s.co;
        tile_gemm(images, s.co, k, x + (size_t)(iy * w->in + ix) * s.ci, s.image_in, &b,
                  z + (size_t)(oy * w->out + ox) * s.co, s.image_out, ky > ky0);
    }
}

static size_t conv_pixel_rows_of_weights(const struct conv *c)
{
    return (size_t)(c->window.kernel * c->window.kernel) * (size_t)c->window.channels;
}

void conv_pixel_pack(const struct conv *c, struct parallel_range panels, const float *w, float *to)
{
    size_t k = conv_pixel_rows_of_weights(c), first = panels.first * tile_columns();
    struct tile_matrix b = {.data = w + first, .ld = (size_t)c->out_channels};

    tile_pack(&b, k, panels.end * tile_columns() - first, to + first * k, k);
}

void conv_pixel_forward(const struct conv *c, const float *w, bool packed, const float *x, float *z,
                        size_t first, size_t images)
{
    struct sizes s = pixel_sizes(c);
    struct tile_matrix weights = {w, packed ? conv_pixel_rows_of_weights(c) : s.co, false, packed};
    int out = c->window.out;

    for (int p = 0; p < out * out; p++)
        conv_pixel_forward_pixel(c, &weights, x + first * s.image_in, z + first * s.image_out,
                                 p / out, p % out, images);
}

/* Output position that reads input position i through a tap, or -1. */
static int conv_pixel_reader(const struct window *w, int i, int tap)
{
    int at = i + w->pad - tap;
    if (at < 0 || at % w->stride || at / w->stride >= w->out)
        return -1;
    return at / w->stride;
}

size_t conv_pixel_hits(const struct conv *c, int tap)
{
    const struct window *w = &c->window;
    size_t hits = 0;

    for (int p = 0; p < w->in * w->in; p++)
        hits += conv_pixel_reader(w, p / w->in, tap / w->kernel) >= 0 &&
                conv_pixel_reader(w, p % w->in, tap % w->kernel) >= 0;
    return hits;
}

bool conv_pixel_weights_part(const struct conv *c, const float *x, const float *dz, int tap,
                             struct parallel_range rows, size_t images, struct parallel_block of,
                             float *dw, size_t ld, bool add)
{
    const struct window *w = &c->window;
    struct sizes s = pixel_sizes(c);
    size_t row = 0;

    for (int p = 0; p < w->in * w->in; p++) {
        int oy = conv_pixel_reader(w, p / w->in, tap / w->kernel),
            ox = conv_pixel_reader(w, p % w->in, tap % w->kernel);
        if (oy < 0 || ox < 0)
            continue;
        size_t from = rows.first > row ? rows.first - row : 0;
        size_t end = rows.end - row < images ? rows.end - row : images;
        if (from < end) {
            const float *pixel = dz + (size_t)(oy * w->out + ox) * s.co + from * s.image_out;
            struct tile_matrix b = {.data = pixel + of.column, .ld = s.image_out};
            tile_gemm_transposed(of.rows, of.columns, end - from,
                                 x + (size_t)p * s.ci + from * s.image_in + of.row, s.image_in, &b,
                                 dw, ld, add);
            add = true;
        }
        row += images;
        if (row >= rows.end)
            break;
    }
    return add;
}

static void conv_pixel_data_of_pixel(const struct conv *c, const struct tile_matrix *weights,
                                     const float *dz, float *dx, bool add, int iy, int ix,
                                     size_t images)
{
    const struct window *w = &c->window;
    struct sizes s = pixel_sizes(c);
    float *to = dx + (size_t)(iy * w->in + ix) * s.ci;

    for (int t = 0; t < w->kernel * w->kernel; t++) {
        int oy = conv_pixel_reader(w, iy, t / w->kernel),
            ox = conv_pixel_reader(w, ix, t % w->kernel);
        struct tile_matrix b = *weights;
        if (oy < 0 || ox < 0)
            continue;
        b.data += (size_t)t * s.tap;
        tile_gemm(images, s.ci, s.co, dz + (size_t)(oy * w->out + ox) * s.co, s.image_out, &b, to,
                  s.image_in, add);
        add = true;
    }
    for (size_t i = 0; !add && !dry_run && i < images; i++)
        memset(to + i * s.image_in, 0, s.ci * sizeof *to);
}

void conv_pixel_pack_data(const struct conv *c, struct parallel_range panels, const float *w,
                          float *to)
{
    struct sizes s = pixel_sizes(c);
    size_t first = panels.first * tile_columns(), count = panels.end * tile_columns() - first;

    for (int t = 0; t < c->window.kernel * c->window.kernel; t++) {
        struct tile_matrix tap = {
            .data = w + (size_t)t * s.tap + first * s.co, .ld = s.co, .transposed = true};
        tile_pack(&tap, s.co, count, to + (size_t)t * s.tap + first * s.co, s.co);
    }
}

void conv_pixel_data(const struct conv *c, const float *w, bool packed, const float *dz, float *dx,
                     bool add, size_t first, size_t images)
{
    struct sizes s = pixel_sizes(c);
    struct tile_matrix weights = {w, s.co, !packed, packed};
    int in = c->window.in;

    for (int p = 0; p < in * in; p++)
        conv_pixel_data_of_pixel(c, &weights, dz + first * s.image_out, dx + first * s.image_in,
                                 add, p / in, p % in, images);
}
