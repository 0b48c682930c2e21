/* What the files of a convolution share: its sizes as matrices, and calls of a caller's hooks. */
#pragma once

#include "worker/layers/conv_shape.h"

static inline size_t conv_pixels_out(const struct conv *c)
{
    return (size_t)c->window.out * (size_t)c->window.out;
}

static inline size_t conv_pixels_in(const struct conv *c)
{
    return (size_t)c->window.in * (size_t)c->window.in;
}

/* Columns of the im2col matrix: the taps that see pixels. */
static inline size_t conv_columns(const struct window *w)
{
    size_t taps = (size_t)window_taps(w);
    return taps * taps * (size_t)w->channels;
}

static inline bool conv_reads_in_place(const struct conv *c)
{
    return c->window.kernel == 1 && c->window.stride == 1;
}

/*
 * The input gradient of a stride-1 convolution is a convolution too: of dz, with the kernel turned
 * by 180 degrees and the channels swapped (Dumoulin and Visin, arXiv:1603.07285, section 4). That
 * reads where col2im reads, adds and writes.
 */
bool conv_turns_kernel(const struct conv *c);
struct window conv_turned_window(const struct conv *c); /* over dz */

/*
 * The taps kept are a square in the middle of the kernel; in the weight matrix they are one run of
 * rows for each ky, or a single one when nothing was left out.
 */
struct conv_runs {
    size_t count;
    size_t length;      /* rows of the weight matrix, columns of the im2col matrix */
    size_t first, step; /* row of the weight matrix of run i: first + i * step */
};
struct conv_runs conv_weight_runs(const struct conv *c);

/* Are products of matrices with n columns made with the own tile? */
bool conv_uses_tile(const struct conv *c, size_t n);

/* Where images are tiny: are so many of them a product's rows? */
bool conv_by_pixel(const struct conv *c, int images);
static inline bool conv_by_pixel_in_team(const struct conv *c, int images, int threads)
{
    return conv_by_pixel(c, images / threads);
}
enum { CONV_PIXEL_IMAGES_AT_ONCE = 256 };

static inline void conv_tell(conv_rows *hook, struct parallel_block part, void *context)
{
    if (hook)
        hook(&part, context);
}

/* Of all `channels`. */
static inline void conv_tell_rows(conv_rows *hook, size_t row, size_t rows, size_t channels,
                                  void *context)
{
    conv_tell(hook, (struct parallel_block){row, rows, 0, channels}, context);
}
