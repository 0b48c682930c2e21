#include "common/arch.h"

#include <stdio.h>
#include <string.h>

/* He et al. 2015 (18 to 152), Xie et al. 2017 (ResNeXt); torchvision's names and block counts. */
static const struct arch archs[] = {
    {"resnet50",         true,  {3, 4, 6, 3},  1,  64, false, true},
    {"resnet18",         false, {2, 2, 2, 2},  1,  64, false, true},
    {"resnet34",         false, {3, 4, 6, 3},  1,  64, false, true},
    {"resnet101",        true,  {3, 4, 23, 3}, 1,  64, false, true},
    {"resnet152",        true,  {3, 8, 36, 3}, 1,  64, false, true},
    {"resnet50v1",       true,  {3, 4, 6, 3},  1,  64, true,  true},
    {"resnext50_32x4d",  true,  {3, 4, 6, 3},  32, 4,  false, true},
    {"resnext101_32x4d", true,  {3, 4, 23, 3}, 32, 4,  false, true},
    {"resnext101_32x8d", true,  {3, 4, 23, 3}, 32, 8,  false, true},
};

#define ARCH_COUNT (sizeof archs / sizeof archs[0])

const struct arch *arch_find(const char *name)
{
    for (size_t i = 0; i < ARCH_COUNT; i++)
        if (strcmp(archs[i].name, name) == 0)
            return &archs[i];
    return NULL;
}

const struct arch *arch_at(size_t i)
{
    return i < ARCH_COUNT ? &archs[i] : NULL;
}

/* Where the walk through the network stands. */
struct walk {
    void (*visit)(const struct arch_conv *conv, void *context);
    void *context;
    int convs;
    int channels, size; /* of the tensor that the next convolution reads */
};

/* Visits one convolution that reads channels x size x size; returns the size of its output. */
static int visit_conv(struct walk *w, const char *name, const char *bn_name, int in, int out,
                      int kernel, int stride, int groups, int size)
{
    struct arch_conv conv = {.in_channels = in,
                             .out_channels = out,
                             .kernel = kernel,
                             .stride = stride,
                             .padding = kernel / 2,
                             .groups = groups,
                             .in_size = size};

    conv.out_size = (size + 2 * conv.padding - kernel) / stride + 1;
    snprintf(conv.name, sizeof conv.name, "%s", name);
    snprintf(conv.bn_name, sizeof conv.bn_name, "%s", bn_name);
    w->convs++;
    if (w->visit)
        w->visit(&conv, w->context);
    return conv.out_size;
}

/* Convolution number of a block ("layer1.0.conv2", "layer1.0.bn2"). */
static int block_conv(struct walk *w, const char *block, int number, int in, int out, int kernel,
                      int stride, int groups, int size)
{
    char name[48], bn_name[48];

    snprintf(name, sizeof name, "%s.conv%d", block, number);
    snprintf(bn_name, sizeof bn_name, "%s.bn%d", block, number);
    return visit_conv(w, name, bn_name, in, out, kernel, stride, groups, size);
}

static void visit_block(struct walk *w, const struct arch *arch, const char *block, int planes,
                        int stride)
{
    int in = w->channels, out = arch->bottleneck ? 4 * planes : planes, size = w->size;
    char name[48], bn_name[48];

    if (arch->bottleneck) {
        int width = planes * arch->width_per_group / 64 * arch->groups;
        int first = arch->stride_in_1x1 ? stride : 1;
        size = block_conv(w, block, 1, in, width, 1, first, 1, size);
        size = block_conv(w, block, 2, width, width, 3, stride / first, arch->groups, size);
        size = block_conv(w, block, 3, width, out, 1, 1, 1, size);
    } else {
        size = block_conv(w, block, 1, in, out, 3, stride, 1, size);
        size = block_conv(w, block, 2, out, out, 3, 1, 1, size);
    }
    if (stride != 1 || in != out) {
        snprintf(name, sizeof name, "%s.downsample.0", block);
        snprintf(bn_name, sizeof bn_name, "%s.downsample.1", block);
        visit_conv(w, name, bn_name, in, out, 1, stride, 1, w->size);
    }
    w->channels = out;
    w->size = size;
}

int arch_each_conv(const struct arch *arch, enum job_stem stem, int image_size,
                   void (*visit)(const struct arch_conv *conv, void *context), void *context)
{
    struct walk w = {.visit = visit, .context = context, .channels = 64};
    char block[32];

    if (stem == JOB_STEM_SMALL) {
        w.size = visit_conv(&w, "conv1", "bn1", 3, 64, 3, 1, 1, image_size);
    } else {
        w.size = visit_conv(&w, "conv1", "bn1", 3, 64, 7, 2, 1, image_size);
        w.size = (w.size + 2 - 3) / 2 + 1; /* the 3x3 max-pooling */
    }
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < arch->blocks[stage]; i++) {
            snprintf(block, sizeof block, "layer%d.%d", stage + 1, i);
            visit_block(&w, arch, block, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
        }
    return w.convs;
}

static int features_of(const struct arch *arch) /* what the classifier reads */
{
    return arch->bottleneck ? 2048 : 512;
}

static double weights_of(const struct arch_conv *conv)
{
    return (double)conv->out_channels * conv->in_channels / conv->groups * conv->kernel *
           conv->kernel;
}

static void add_parameters(const struct arch_conv *conv, void *context)
{
    *(int64_t *)context += (int64_t)weights_of(conv) + 2 * (int64_t)conv->out_channels;
}

int64_t arch_parameters(const struct arch *arch, enum job_stem stem, int classes)
{
    int64_t sum = (int64_t)(features_of(arch) + 1) * classes;

    arch_each_conv(arch, stem, 224, add_parameters, &sum);
    return sum;
}

static void add_macs(const struct arch_conv *conv, void *context)
{
    *(double *)context += weights_of(conv) * conv->out_size * conv->out_size;
}

double arch_forward_macs(const struct arch *arch, enum job_stem stem, int classes, int image_size)
{
    double sum = (double)features_of(arch) * classes;

    arch_each_conv(arch, stem, image_size, add_macs, &sum);
    return sum;
}
