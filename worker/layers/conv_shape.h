/*
 * A convolution of square NHWC images without bias: sizes, algorithm, and arguments of backward.
 *
 * Weights are (ky, kx, c_in / groups, c_out), row-major: a matrix (K, c_out) with K = kernel^2 c_in
 * / groups. Rows are pixels counted over the whole batch: r = (image, y, x).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/job/job_spec.h"
#include "worker/kernels/window.h"
#include "worker/team/parallel.h"

/* Algorithms, chosen by shape. OPENBLAS: im2col tiles, any shape. TILE: im2col tiles and the
 * register tile, for multiples of TILE_COLUMNS channels. PIXEL, for many tiny images: a product's
 * rows are the images of the batch at one pixel, and only taps that hit pixels are multiplied (at
 * 2x2 four of nine). GROUPED: several groups (conv_grouped.h). */
enum conv_algorithm { CONV_OPENBLAS, CONV_TILE, CONV_PIXEL, CONV_GROUPED };

enum conv_direction { CONV_FORWARD, CONV_DATA, CONV_WEIGHTS, CONV_DIRECTIONS };

/* Winograd's minimal filtering instead, in tiles of 2x2 or 4x4 outputs (conv_winograd.h): fewer
 * products, larger rounding errors. For 256 channels of noise, root mean square and maximum: direct
 * 1.5e-7 and 1e-6, 2x2 2e-7 and 1.5e-6, 4x4 4e-7 and 3e-6 (checked by a test). */
enum conv_winograd { CONV_NO_WINOGRAD = 0, CONV_WINOGRAD_2 = 2, CONV_WINOGRAD_4 = 4 };

struct conv {
    struct window window; /* of the input */
    int out_channels, groups;
    enum conv_algorithm algorithm;
    enum conv_winograd winograd[CONV_DIRECTIONS]; /* conv_make: none */
};

struct conv conv_make(int in_size, int in_channels, int out_channels, int kernel, int stride,
                      int pad, int groups);

/* Applies model.gemm; conv_make has chosen as for auto. openblas also disables Winograd. */
void conv_choose_gemm(struct conv *c, enum job_gemm gemm);

/* "openblas" or "own": the effective choice at this ISA level. */
const char *conv_gemm_name(enum job_gemm gemm);

/* K of the weight matrix (K, c_out). */
static inline size_t conv_matrix_rows(const struct conv *c)
{
    const struct window *w = &c->window;
    return (size_t)w->kernel * (size_t)w->kernel * (size_t)(w->channels / c->groups);
}

size_t conv_weights(const struct conv *c); /* floats */

/* Hook: these rows and channels are about to be read, or were written. */
typedef void conv_rows(const struct parallel_block *part, void *context);

struct conv_backward {
    const float *w, *x;
    const float *dz;         /* (N, out, out, c_out), read after `ready` was called for the rows */
    float *dx;               /* (N, in, in, c_in); may be NULL */
    bool add_dx;             /* add instead of overwriting */
    float *dw;               /* (K, c_out) */
    bool add_dw;             /* add instead of overwriting */
    conv_rows *ready, *done; /* of dz; of dx. May be NULL */
    void *context;
};

struct conv_memory {
    float *team;                    /* (team_floats) */
    float *const *own;              /* [threads], (own_floats) each */
    size_t team_floats, own_floats; /* at least conv_team_floats and conv_own_floats */
    int threads;                    /* that it is for; a team may have started fewer */
};

/* A thread's part in a pass over the images [0, images) */
struct conv_part {
    const struct conv *c;
    int images;
    struct parallel_share share;
    const struct conv_memory *memory;
};

/* A single thread has larger tiles, and finishes each before the next: dw is summed directly, and
 * dx follows while dz is in cache. */
static inline bool conv_part_is_single(const struct conv_part *p)
{
    return p->memory->threads == 1;
}

static inline float *conv_part_own(const struct conv_part *p)
{
    return p->memory->own[p->share.part];
}

static inline size_t conv_pixels_out(const struct conv *c)
{
    return (size_t)c->window.out * (size_t)c->window.out;
}

static inline size_t conv_pixels_in(const struct conv *c)
{
    return (size_t)c->window.in * (size_t)c->window.in;
}

/* Columns of the im2col matrix: over the taps that see pixels. */
static inline size_t conv_columns(const struct window *w)
{
    size_t taps = (size_t)window_taps(w);
    return taps * taps * (size_t)w->channels;
}

static inline bool conv_reads_in_place(const struct conv *c)
{
    return c->window.kernel == 1 && c->window.stride == 1;
}

/* The input gradient of a stride-1 convolution is itself a convolution of dz, with the kernel
 * rotated by 180 degrees and the channels swapped (Dumoulin and Visin, arXiv:1603.07285, section
 * 4). It only reads where col2im reads, adds and writes. */
bool conv_turns_kernel(const struct conv *c);
struct window conv_turned_window(const struct conv *c); /* over dz */

/* The remaining taps are a square: runs of rows of the weight matrix, one per ky or one for all */
struct conv_runs {
    size_t count;
    size_t length;      /* rows of the weight matrix, columns of the im2col matrix */
    size_t first, step; /* row of the weight matrix of run i: first + i * step */
};
struct conv_runs conv_weight_runs(const struct conv *c);

/* Whether products of matrices with n columns use the register tile. */
bool conv_uses_tile(const struct conv *c, size_t n);

/* Whether threads with so many images each compute pixel by pixel. */
bool conv_part_by_pixel(const struct conv_part *p);
enum { CONV_PIXEL_IMAGES_AT_ONCE = 256 };

static inline void conv_call_hook(conv_rows *hook, struct parallel_block part, void *context)
{
    if (hook)
        hook(&part, context);
}

static inline void conv_call_hook_rows(conv_rows *hook, size_t row, size_t rows, size_t channels,
                                       void *context)
{
    conv_call_hook(hook, (struct parallel_block){row, rows, 0, channels}, context);
}
