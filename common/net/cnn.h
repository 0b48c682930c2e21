/*
 * arch cnn laid out: two convolutions with bias and ReLU, each with a 2x2 max-pooling behind it, a
 * hidden layer with ReLU and the classifier. Where the engine keeps what belongs to an image: the
 * planner states the size, the engine allocates it.
 */
#pragma once

#include "common/net/arch.h"

enum { CNN_STAGES = 2 };

struct cnn_layout {
    struct arch_conv convs[CNN_STAGES];
    struct arch_linear linears[ARCH_LINEARS];
    /* Buffers, in floats of one image. */
    size_t y[CNN_STAGES];             /* (size, size, C): relu(convolution + bias) */
    size_t pooled[CNN_STAGES];        /* (size / 2, size / 2, C) */
    size_t tap[CNN_STAGES];           /* where the maxima were: a byte for each of pooled */
    size_t largest_y, largest_pooled; /* their gradients take turns in one buffer each */
    size_t floats;                    /* all together; the classifier's input is not among them */
};

/* inference: no taps and gradients. */
void cnn_lay_out(const struct arch_shape *shape, bool inference, struct cnn_layout *out);
