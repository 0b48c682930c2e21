/*
 * A network of the residual family laid out: its convolutions in forward order and the residual
 * blocks they form, behind a stem (with a max-pooling or without) and before an average pool and a
 * classifier. The engine builds its model from it, the planner the model's memory.
 */
#pragma once

#include "common/net/arch.h"

/* ResNet-152 has 155 and 50. */
enum { NETWORK_CONVS = 160, NETWORK_BLOCKS = 64 };

struct network_block {
    int first, convs; /* the main path */
    int downsample;   /* convolution of the shortcut, or -1 */
};

struct network {
    int conv_count, block_count;
    bool pools;      /* the ImageNet stem: 3x3, stride 2 */
    int pooled_size; /* height and width behind it */
    struct arch_conv convs[NETWORK_CONVS];
    struct network_block blocks[NETWORK_BLOCKS];
};

/* Of the residual family. */
void network_make(const struct arch_shape *shape, struct network *out);

/* Floats of a convolution's output, of one image. */
size_t network_floats(const struct arch_conv *conv);

/* The last convolution of a block's main path. */
int network_block_last(const struct network_block *block);
