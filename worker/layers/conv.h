/*
 * Convolution of square NHWC images without bias: forward and backward over a range of a batch in
 * one thread, or of a batch by a team of threads.
 *
 * Weights are (ky, kx, c_in / groups, c_out), row-major: as a matrix (K, c_out) with K = kernel^2
 * c_in / groups. Rows are output (or input) pixels counted through the whole batch: row r = (image,
 * y, x). Work goes tile by tile; a caller's hooks see the rows of a tile just before they are read
 * or just after they were written, while they are in cache, so that batch norm needs no passes of
 * its own.
 */
#ifndef TRAIND_WORKER_LAYERS_CONV_H
#define TRAIND_WORKER_LAYERS_CONV_H

#include <stdbool.h>
#include <stddef.h>

#include "common/job/job_spec.h"
#include "worker/team/parallel.h"
#include "worker/kernels/window.h"

/*
 * How the products are made, chosen by shape: im2col tiles and OpenBLAS, which takes everything;
 * im2col tiles and the own register tile, for channels in multiples of TILE_COLUMNS; and, where
 * images are tiny and many, the own tile over images: at each pixel the rows of a product are the
 * images of the batch and only taps that hit real pixels are multiplied (at 2x2 four of nine), in
 * place. Several groups go to CONV_GROUPED (conv_grouped.h, with the shapes it takes), which
 * multiplies directly.
 */
enum conv_algorithm { CONV_OPENBLAS, CONV_TILE, CONV_PIXEL, CONV_GROUPED };

/* What is made: z, dx, dw. */
enum conv_direction { CONV_FORWARD, CONV_DATA, CONV_WEIGHTS, CONV_DIRECTIONS };

/*
 * Winograd's minimal filtering instead of the algorithm above, in tiles of 2x2 or 4x4 outputs
 * (conv_winograd.h, with the shapes it takes): fewer products, with a larger rounding error. Of 256
 * channels of noise, in parts of the largest element, root mean square and at most: direct 1.5e-7
 * and 1e-6, 2x2 2e-7 and 1.5e-6, 4x4 4e-7 and 3e-6 (a test holds them to that).
 */
enum conv_winograd { CONV_NO_WINOGRAD = 0, CONV_WINOGRAD_2 = 2, CONV_WINOGRAD_4 = 4 };

struct conv {
    struct window window; /* of the input */
    int out_channels, groups;
    enum conv_algorithm algorithm;
    enum conv_winograd winograd[CONV_DIRECTIONS]; /* conv_make: none */
};

struct conv conv_make(int in_size, int in_channels, int out_channels, int kernel, int stride,
                      int pad, int groups);

/* model.gemm: conv_make has chosen as auto does. openblas is without Winograd, too. */
void conv_choose_gemm(struct conv *c, enum job_gemm gemm);

/* "openblas" or "own": what the choice comes to on this kind of processor. */
const char *conv_gemm_name(enum job_gemm gemm);

size_t conv_weights(const struct conv *c);        /* floats */
size_t conv_scratch_floats(const struct conv *c); /* of a thread that works by itself */

/* These rows, and of them these channels, are about to be read, or were written. */
typedef void conv_rows(const struct parallel_block *part, void *context);

/* z (N, out, out, c_out) of the images [first, end). done may be NULL. */
void conv_forward(const struct conv *c, const float *w, const float *x, float *z, int first,
                  int end, float *scratch, conv_rows *done, void *context);

struct conv_backward {
    const float *w, *x;
    const float *dz; /* (N, out, out, c_out), read after `ready` was called for the rows */
    float *dx;       /* (N, in, in, c_in); NULL: not wanted */
    bool add_dx;     /* added to what is there instead of overwriting */
    float *dw;       /* (K, c_out) */
    bool add_dw;     /* added instead of overwriting */
    float *scratch;
    conv_rows *ready, *done; /* of dz; of dx. NULL: none */
    void *context;
};

/* Gradients from the images [first, end) (first < end). */
void conv_backward(const struct conv *c, const struct conv_backward *b, int first, int end);

/*
 * The same of images [0, images) by a team of threads that share each product (parallel.h has the
 * rule), weights that are made once, and the sums of dw: each thread calls it, and has done its
 * part when it returns; what others did is there behind the next barrier. Hooks are called for
 * parts of rows, by the thread that reads or wrote them, each element once. x and w are there
 * when the first thread begins; of b, scratch is not used. A team of one is not wanted here.
 */
struct conv_memory {
    float *team;       /* conv_team_floats: one for all, of so many images and threads at most */
    float *const *own; /* [parts]: conv_own_floats each */
};
size_t conv_team_floats(const struct conv *c, int images, int threads);
size_t conv_own_floats(const struct conv *c);

void conv_forward_team(const struct conv *c, const float *w, const float *x, float *z, int images,
                       struct parallel_share share, const struct conv_memory *memory,
                       conv_rows *done, void *context);
void conv_backward_team(const struct conv *c, const struct conv_backward *b, int images,
                        struct parallel_share share, const struct conv_memory *memory);

/* Does backward read x only row by row, right after `ready` was called for all channels of the
 * rows? Otherwise x must be there from the beginning, and `ready` gets blocks of channels. */
bool conv_backward_by_rows(const struct conv *c, int images, int threads, bool wants_dx);

/* The definition, in double, of the whole batch: what tests compare with. dx and dw are
 * overwritten. */
void conv_forward_reference(const struct conv *c, const float *w, const float *x, float *z, int n);
void conv_backward_reference(const struct conv *c, const float *w, const float *x, const float *dz,
                             int n, float *dx, float *dw);

#endif
