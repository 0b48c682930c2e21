/*
 * Convolutions of conv.h with activations and weights in bf16 and sums in fp32: z and dx are
 * rounded once, dw stays fp32. Computed directly, without im2col, by the products of bf16.h.
 *
 * Images are one sequence of positions with a column and a row of zeros between neighbours, so that
 * a tap is a distance and any 32 consecutive positions are the rows of a product. With stride 2
 * there are four sequences, of even and odd rows and columns. A 1x1 of stride 1 reads its input in
 * place. dw needs the positions along a row, so its x is transposed.
 *
 * Channels are multiples of 32, those of groups a divisor or a multiple of 32; a layer with fewer
 * input channels (the first one) reads fp32 and computes no dx.
 */
#pragma once

#include "worker/kernels/bf16.h"
#include "worker/team/parallel.h"
#include "worker/layers/conv_shape.h"

bool conv_bf16_takes(const struct conv *c);

/* Packs weights, CONV_FORWARD or CONV_DATA. Panels [0, conv_bf16_panels) are independent. */
size_t conv_bf16_packed(const struct conv *c, enum conv_direction direction); /* elements */
size_t conv_bf16_panels(const struct conv *c, enum conv_direction direction);
void conv_bf16_pack(const struct conv *c, enum conv_direction direction, const float *w,
                    size_t first, size_t end, bf16 *packed);

/* A thread's memory for its share of a batch (bf16_grid.h: bf16_thread_bytes_of). threads 0: as
 * large as bf16_scratch_of needs */
struct conv_bf16_scratch {
    void *memory;
    size_t images;
    int threads;
};

/* Shares the lines of z (N out), perhaps none; an image's last line costs more if zeros follow */
struct parallel_range conv_bf16_lines(const struct conv *c, size_t images,
                                      struct parallel_share share);

/* Lines [first, end) of z (N, out, out, c_out). done may be NULL. x is float if c_in < 32, unless
 * bf16_x. */
void conv_bf16_forward(const struct conv *c, const bf16 *packed, const void *x, bf16 *z,
                       size_t first, size_t end, struct conv_bf16_scratch scratch, conv_rows *done,
                       void *context, bool bf16_x);

/* Whether backward reads dz and x of its own lines only, not of the image's neighbouring ones */
bool conv_bf16_keeps_lines(const struct conv *c);

struct conv_bf16_backward {
    const bf16 *packed; /* for CONV_DATA; NULL without dx */
    bool bf16_x;        /* as in forward */
    const void *x; /* as in forward; read after `ready` was called for the rows (1x1 of stride 1) or
                      for the image */
    const bf16
        *dz;  /* read after `ready` was called for the rows. For lines that are not whole images, it
                 and x must be complete and `ready` NULL, unless conv_bf16_keeps_lines */
    bf16 *dx; /* may be NULL */
    bool add_dx;
    float *dw; /* of a 3x3: may be NULL */
    bool add_dw;
    struct conv_bf16_scratch scratch;
    conv_rows *ready, *done; /* of dz; of dx, with all channels. May be NULL */
    void *context;
    /* The team's memory for the factors of dw, for conv_bf16_sum_shared. NULL: sum dw of these
     * lines here */
    void *shared;
    size_t images; /* of the batch */
    struct parallel_share share;
};

/* Computes dw of the lines [first, end) of dz, and their lines of dx. */
void conv_bf16_backward(const struct conv *c, const struct conv_bf16_backward *b, size_t first,
                        size_t end);

/* Whether so many threads may use `shared` for a batch. */
bool conv_bf16_shares(const struct conv *c, size_t images, int threads);
/* Sums this share's blocks of dw. Call when all threads have finished conv_bf16_backward. */
void conv_bf16_sum_shared(const struct conv *c, const struct conv_bf16_backward *b);
