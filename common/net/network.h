/* The structure of a network, from which engine and planner compute. */
#pragma once

#include <stddef.h>

#include "common/net/arch.h"

/* The residual family: convolutions in forward order and the residual blocks they form, after a
 * stem (with or without max-pooling) and before an average pooling and a classifier */

enum { NETWORK_CONVS = 160, NETWORK_BLOCKS = 64 };

struct network_block {
    int first, convs; /* of the main path */
    int downsample;   /* convolution of the shortcut, or -1 */
};

struct network {
    int conv_count, block_count;
    bool pools;      /* the stem has the max-pooling of ImageNet networks: 3x3, stride 2 */
    bool blurs;      /* it has a low-pass filter: 3x3 and stride 1, then the filter with stride 2 */
    int pooled_size; /* height and width after the stem */
    int frozen_convs, frozen_blocks; /* the first ones, which are not trained */
    struct arch_conv convs[NETWORK_CONVS];
    struct network_block blocks[NETWORK_BLOCKS];
};

void network_make(const struct arch_shape *shape, struct network *out);

size_t network_floats(const struct arch_conv *conv);

int network_block_last(const struct network_block *block);

/* arch cnn: two convolutions with bias and ReLU, each followed by a 2x2 max-pooling, a hidden layer
 * with ReLU, and the classifier */
enum { CNN_STAGES = 2 };

struct cnn_layout {
    struct arch_conv convs[CNN_STAGES];
    struct arch_linear linears[ARCH_LINEARS];
    size_t y[CNN_STAGES];      /* (size, size, C): relu(convolution + bias) */
    size_t pooled[CNN_STAGES]; /* (size / 2, size / 2, C) */
    size_t tap[CNN_STAGES];    /* positions of the maxima, a byte for each number of pooled */
    size_t largest_y, largest_pooled; /* all stages share one buffer for each kind of gradient */
    size_t floats;                    /* total, without the classifier's input */
};

/* inference: without taps and gradients. Frozen parts have them all the same. */
void cnn_lay_out(const struct arch_shape *shape, bool inference, struct cnn_layout *out);
