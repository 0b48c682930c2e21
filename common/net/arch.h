/*
 * The table of architectures and their layers, from which the planner computes memory and FLOPs and
 * the engine (worker/model) builds its model.
 *
 * model.width multiplies channels: in a residual block the inner ones, like torchvision's
 * width_per_group (Wide ResNet, Zagoruyko and Komodakis, arXiv:1605.07146: wide_resnet50_2 is
 * resnet50 of width 2); in cnn the filters of both convolutions and the hidden units. Products are
 * rounded to the nearest multiple of 8 (Sandler et al., arXiv:1801.04381), except channels of
 * groups (arch_takes_width).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"

enum arch_family {
    ARCH_RESIDUAL, /* He et al. 2015, Xie et al. 2017 */
    ARCH_CNN
};

struct arch {
    const char *name;
    enum arch_family family;
    bool bottleneck;
    int blocks[4];
    int groups;          /* of the 3x3 convolution */
    int width_per_group; /* 64 for ResNet */
    bool stride_in_1x1; /* v1: the first 1x1 convolution has the down-sampling stride; v1.5: the 3x3
                           has it */
};

struct arch_shape {
    const struct arch *arch;
    enum job_stem stem;
    double width; /* model.width; 0 means 1 */
    int classes, image_size;
    bool blur_pool;
    int frozen; /* the first so many parts are not trained (arch_frozen_parts) */
};

const struct arch *arch_find(const char *name); /* NULL: no such architecture */
const struct arch *arch_at(size_t i);           /* NULL after the last one */

struct arch_shape arch_shape_of(const struct job_spec *spec);

int arch_image_channels(const struct arch *arch);

/* Returns whether the width is valid: channels of groups must remain 4, 8, 16, ... */
bool arch_takes_width(const struct arch *arch, double width);

/* Returns whether precision "bf16" is supported: all convolutions but the first need channels in
 * multiples of 32, in groups of 4, 8, 16 or multiples of 32. Not for cnn. */
bool arch_takes_bf16(const struct arch_shape *shape);

/* Returns the architecture's default for a key, as JSON text; NULL: that of the table of keys. */
const char *arch_default(const struct arch *arch, const char *pointer);

bool arch_uses(const struct arch *arch, const char *pointer);

enum { ARCH_CNN_POOL = 2 };
#define ARCH_BATCHNORM_EPSILON 1e-5

struct arch_conv {
    char name[48]; /* torchvision's name: "layer1.0.conv2", "layer1.0.downsample.0", "conv1" */
    char
        bn_name[48]; /* "layer1.0.bn2", "layer1.0.downsample.1", "bn1"; "": it has a bias instead */
    int in_channels, out_channels, kernel, stride, padding, groups;
    int in_size, out_size; /* height and width */
    int blur_size;   /* height and width before the low-pass filter of model.blur_pool; 0: none */
    int blur_stride; /* of this filter; in_size is the size after it */
};

/* Visits all convolutions in forward order (downsample last in its block). Returns their number. */
int arch_each_conv(const struct arch_shape *shape,
                   void (*visit)(const struct arch_conv *conv, void *context), void *context);

struct arch_linear {
    const char *name; /* for example "fc" or "fc1" */
    int in, out;
    int pixels; /* in is this many pixels times channels, flattened */
};

enum { ARCH_LINEARS = 2 };

/* The layers after the convolutions in forward order; the last is the classifier. Returns their
 * number. */
int arch_linears(const struct arch_shape *shape, struct arch_linear out[ARCH_LINEARS]);

/* The parts for model.freeze from the input on: a ResNet's conv1 (with bn1), layer1 to layer4;
 * cnn's conv1, conv2, fc1. Returns how many of them the names are, in any order, if they are the
 * first ones, or all for "backbone"; otherwise -1. */
int arch_frozen_parts(const struct arch *arch, char *const *names, size_t count);
char *arch_list_parts(const struct arch *arch, char *text, size_t bytes); /* returns text */

/* Whether the layer or tensor with this name belongs to the shape's frozen parts. */
bool arch_is_frozen(const struct arch_shape *shape, const char *name);

int64_t arch_parameters(const struct arch_shape *shape);
int64_t arch_trained_parameters(const struct arch_shape *shape);
double arch_forward_macs(const struct arch_shape *shape);
/* Forward, and twice the forward of the trained parts for backward */
double arch_training_macs(const struct arch_shape *shape);
