/*
 * The convolutions of conv.h with bf16 activations, weights rounded to bf16, and sums in fp32: z
 * and dx are rounded once, dw stays fp32. Directly, without im2col, by the products of bf16.h.
 *
 * Images are laid out as one sequence of positions with a column and a row of zeros between
 * neighbours; then a tap of the kernel is a distance, and 32 positions from any one on are the rows
 * of a product. A stride of 2 reads the four sequences of even and odd rows and columns. A 1x1 of
 * stride 1 reads its input in place. dw needs the positions along a row: its x is transposed.
 *
 * Channels in and out are multiples of 32, in groups of a divisor or a multiple of 32; a layer of
 * fewer channels in than 32 (the first one) reads fp32 and gives no dx.
 */
#pragma once

#include "worker/kernels/bf16.h"
#include "worker/team/parallel.h"
#include "worker/layers/conv_shape.h"

bool conv_bf16_takes(const struct conv *c);

/* The weights as the products want them, made once after each change; CONV_FORWARD or CONV_DATA. */
size_t conv_bf16_packed(const struct conv *c, enum conv_direction direction); /* elements */
/* Independent parts of that: [0, conv_bf16_panels), to be shared out. */
size_t conv_bf16_panels(const struct conv *c, enum conv_direction direction);
void conv_bf16_pack(const struct conv *c, enum conv_direction direction, const float *w,
                    size_t first, size_t end, bf16 *packed);

/* A thread's memory, for its share of a batch (bf16_grid.h: bf16_thread_bytes_of). threads 0: as
 * large as bf16_scratch_of says. */
struct conv_bf16_scratch {
    void *memory;
    size_t images;
    int threads;
};

/* Rows (pixels) [row, row + rows) of z or dx were written, or of dz are about to be read. */
typedef void conv_bf16_rows(size_t row, size_t rows, void *context);

/* What threads share are lines of z, counted through the batch: (N out). A share's, perhaps none;
 * an image's last line takes longer where rows of zeros lie behind it. */
struct parallel_range conv_bf16_lines(const struct conv *c, size_t images,
                                      struct parallel_share share);

/* The lines [first, end) of z (N, out, out, c_out). done may be NULL. x is float where c_in <
 * 32, unless bf16_x. */
void conv_bf16_forward(const struct conv *c, const bf16 *packed, const void *x, bf16 *z,
                       size_t first, size_t end, struct conv_bf16_scratch scratch,
                       conv_bf16_rows *done, void *context, bool bf16_x);

/* Does backward read no rows of dz and x but those of its lines? Others reach beyond them, into the
 * lines before and behind in the same image. */
bool conv_bf16_keeps_lines(const struct conv *c);

struct conv_bf16_backward {
    const bf16 *packed; /* for CONV_DATA; NULL without dx */
    bool bf16_x;        /* as forward's */
    const void *x;  /* as forward's; read after `ready` was called for the rows (1x1 of stride 1)
                       or for the image */
    const bf16 *dz; /* read after `ready` was called for the rows. All of it and of x must be there,
                       and ready be NULL, for lines that are no whole images, unless
                       conv_bf16_keeps_lines */
    bf16 *dx;       /* NULL: not wanted */
    bool add_dx;
    float *dw;
    bool add_dw;
    struct conv_bf16_scratch scratch;
    conv_bf16_rows *ready, *done; /* of dz; of dx. NULL: none */
    void *context;
    /* Memory of the team for dw's factors (bf16_grid.h: bf16_shared_of): conv_bf16_backward then
     * leaves dw to conv_bf16_sum_shared. NULL: it sums dw of its lines itself. */
    void *shared;
    size_t images; /* of the batch */
    struct parallel_share share;
};

/* Of the lines [first, end) of dz: all that they give to dw, and the lines of dx at their place. */
void conv_bf16_backward(const struct conv *c, const struct conv_bf16_backward *b, size_t first,
                        size_t end);

/* May so many threads sum dw of a batch so? */
bool conv_bf16_shares(const struct conv *c, size_t images, int threads);
/* This share's blocks of dw, when all threads' conv_bf16_backward is done for the batch. */
void conv_bf16_sum_shared(const struct conv *c, const struct conv_bf16_backward *b);
