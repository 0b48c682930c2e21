/*
 * The memory layout of a step: one arena per image, in which buffers with disjoint lifetimes share
 * memory. The planner reports its size; the engine allocates it and computes in exactly this order.
 *
 * Training keeps the output z of each convolution from forward to backward, and what cannot be
 * recomputed cheaply: the pooled input of the first block with its taps. Activations y = relu(scale
 * z + shift) live from one convolution to the next, and are recomputed for backward. So are the
 * outputs of the blocks, in runs. A run begins at a down-sampling shortcut or at an output that was
 * kept; before backward of the block at its end, the outputs of the whole run are recomputed in
 * forward order from z alone. The outputs of the last stage are kept, because backward begins
 * there. Such recomputation is described by Chen et al., arXiv:1604.06174.
 *
 * Evaluation normalises z in place, tile by tile, and needs only z. So do frozen layers in
 * training; what the lowest trained layer reads is kept.
 */
#pragma once

#include <stddef.h>

#include "common/net/network.h"

enum { ARENA_BUFFERS = 1024 };

struct arena_buffer {
    size_t size;
    int first, last; /* times of its first and last use, inclusive */
    size_t offset;   /* result of arena_place */
};

/* Places the buffers such that those with overlapping lifetimes do not share memory: "greedy by
 * size", Pisarchyk and Lee, arXiv:2001.03288. Offsets are multiples of the greatest common divisor
 * of the sizes. Returns the total size. */
size_t arena_place(struct arena_buffer *buffers, int count);

struct activation_unit {
    int z;
    int y; /* in forward; unused for the last unit of a block and for down-sampling units */
    int y_again;
    int g;               /* gradient of y, then of z */
    int dz;              /* gradient of z if g must be preserved */
    int x, x_again, g_x; /* of model.blur_pool: the filtered input, and its gradient */
};

struct activation_block {
    int out; /* relu(bn(z of the last unit) + shortcut), in forward */
    int out_again;
    int g;      /* gradient of out; also of the input if the block does not down-sample */
    int derive; /* before backward of this block the outputs of the blocks [derive, this one) are
                   recomputed; -1: none */
};

struct activations {
    struct arena_buffer buffers[ARENA_BUFFERS]; /* sizes in numbers of one image */
    int count;
    struct activation_unit units[NETWORK_CONVS];
    struct activation_block blocks[NETWORK_BLOCKS];
    int in, in_again, g_in; /* of the first block: the pooled input, or the stem's y */
    int tap;                /* positions of the maxima in the pooling, a byte for each number */
    int maxima, g_maxima;   /* before the low-pass filter of the pooling */
    size_t numbers;         /* total per image */
};

/* number_bytes: size of an activation or its gradient: 4, or 2 with bf16. */
void activations_plan(const struct network *network, bool inference, size_t number_bytes,
                      struct activations *out);
