/*
 * The memory layout of a step: one arena per image, whose buffers are shared by lifetime. The
 * planner states its size, the engine allocates it and works in exactly this order.
 *
 * Training keeps every convolution's output z from forward to backward, and what cannot be had from
 * them cheaply: the pooled input of the first block with its taps. Activations y = relu(scale z +
 * shift) live from the convolution before to the next one, and are recomputed for backward. So are
 * the blocks' outputs: after the last unit of a block that is the end of a run, the outputs of the
 * whole run are derived, forward, from the z alone (a run begins at a down-sampling shortcut or at
 * an output that was kept). The last stage's outputs are kept, because backward begins there. Chen
 * et al., arXiv:1604.06174, describe such recomputation.
 *
 * Evaluation normalises z in place, tile by tile, and needs z only.
 */
#pragma once

#include <stddef.h>

#include "common/net/network.h"

enum { ARENA_BUFFERS = 1024 };

struct arena_buffer {
    size_t size;
    int first, last; /* times of its first and last use, both included */
    size_t offset;   /* set by arena_place */
};

/* Places buffers so that overlapping lifetimes never share memory: "greedy by size", Pisarchyk and
 * Lee, arXiv:2001.03288. Offsets are multiples of the sizes' greatest common divisor. Returns the
 * total size. */
size_t arena_place(struct arena_buffer *buffers, int count);

struct activation_unit {
    int z;
    int y; /* forward: not of the last unit of a block and of a down-sampling one */
    int y_again;
    int g;  /* gradient of y, then of z */
    int dz; /* gradient of z where g must stay as it is */
};

struct activation_block {
    int out; /* relu(bn(z of the last unit) + shortcut), forward */
    int out_again;
    int g;      /* gradient of out; of the input too, if nothing is down-sampled */
    int derive; /* before backward of this block, the outputs of the blocks [derive, this one)
                   are derived; -1: nothing */
};

struct activations {
    struct arena_buffer buffers[ARENA_BUFFERS]; /* in numbers of one image */
    int count;
    struct activation_unit units[NETWORK_CONVS];
    struct activation_block blocks[NETWORK_BLOCKS];
    int in, in_again, g_in; /* of the first block: pooled, or the stem's y */
    int tap;                /* positions of the pooling's maxima: a byte for each number */
    size_t numbers;         /* per image, in total */
};

/* number_bytes: of an activation or its gradient: 4, or 2 with bf16. */
void activations_plan(const struct network *network, bool inference, size_t number_bytes,
                      struct activations *out);
