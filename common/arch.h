/*
 * The model family, described: one table of architectures, and the list of tensors and layers each
 * one has. Planner (memory, FLOPs) and engine (worker/model) both build from it.
 */
#ifndef TRAIND_COMMON_ARCH_H
#define TRAIND_COMMON_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job_spec.h"

struct arch {
    const char *name;    /* "resnet50" */
    bool bottleneck;     /* three convolutions a block, or two */
    int blocks[4];       /* of each stage */
    int groups;          /* of the 3x3 convolution */
    int width_per_group; /* 64 for ResNet */
    bool stride_in_1x1;  /* v1: the down-sampling stride is in the first 1x1; v1.5: in the 3x3 */
    bool built;          /* this version's engine can train it */
};

const struct arch *arch_find(const char *name); /* NULL: none of that name */
const struct arch *arch_at(size_t i);           /* NULL behind the last: for listings */

/* One convolution with its batch norm, as it lies in the network. */
struct arch_conv {
    char name[48];    /* torchvision's: "layer1.0.conv2", "layer1.0.downsample.0", "conv1" */
    char bn_name[48]; /* "layer1.0.bn2", "layer1.0.downsample.1", "bn1" */
    int in_channels, out_channels, kernel, stride, padding, groups;
    int in_size, out_size; /* height and width, square */
};

/* Calls visit for every convolution in forward order (downsample last in its block).
 * Returns the number of convolutions. */
int arch_each_conv(const struct arch *arch, enum job_stem stem, int image_size,
                   void (*visit)(const struct arch_conv *conv, void *context), void *context);

int64_t arch_parameters(const struct arch *arch, enum job_stem stem, int classes); /* floats */
double arch_forward_macs(const struct arch *arch, enum job_stem stem, int classes, int image_size);

#endif
