#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/arch.h"

static int64_t parameters(const char *name)
{
    return arch_parameters(arch_find(name), JOB_STEM_IMAGENET, 1000);
}

/* torchvision's counts, sum(p.numel() for p in model.parameters()). */
Test(arch, has_torchvisions_parameter_counts)
{
    cr_assert_eq(parameters("resnet18"), 11689512);
    cr_assert_eq(parameters("resnet34"), 21797672);
    cr_assert_eq(parameters("resnet50"), 25557032);
    cr_assert_eq(parameters("resnet50v1"), 25557032);
    cr_assert_eq(parameters("resnet101"), 44549160);
    cr_assert_eq(parameters("resnet152"), 60192808);
    cr_assert_eq(parameters("resnext50_32x4d"), 25028904);
    cr_assert_eq(parameters("resnext101_32x4d"), 44177704);
    cr_assert_eq(parameters("resnext101_32x8d"), 88791336);
}

static double gmacs(const char *name)
{
    return arch_forward_macs(arch_find(name), JOB_STEM_IMAGENET, 1000, 224) / 1e9;
}

Test(arch, has_the_published_work_of_a_forward_pass)
{
    cr_assert_float_eq(gmacs("resnet50"), 4.089, 0.001);
    cr_assert_float_eq(gmacs("resnet50v1"), 3.858, 0.001);
    cr_assert_float_eq(gmacs("resnext101_32x4d"), 7.97, 0.02);
}

struct seen {
    int count, downsamples;
    int channels, size; /* of the convolution before */
    struct arch_conv first, last;
};

static void look(const struct arch_conv *conv, void *context)
{
    struct seen *seen = context;

    if (seen->count++ == 0)
        seen->first = *conv;
    seen->downsamples += strstr(conv->name, "downsample") != NULL;
    seen->last = *conv;
    cr_assert_eq(conv->out_size,
                 (conv->in_size + 2 * conv->padding - conv->kernel) / conv->stride + 1);
    cr_assert_eq(conv->in_channels % conv->groups, 0);
}

Test(arch, walks_resnet50_in_forward_order)
{
    struct seen seen = {0};

    cr_assert_eq(arch_each_conv(arch_find("resnet50"), JOB_STEM_IMAGENET, 224, look, &seen), 53);
    cr_assert_eq(seen.count, 53);
    cr_assert_eq(seen.downsamples, 4);
    cr_assert_str_eq(seen.first.name, "conv1");
    cr_assert_str_eq(seen.first.bn_name, "bn1");
    cr_assert_eq(seen.first.out_size, 112);
    cr_assert_str_eq(seen.last.name, "layer4.2.conv3");
    cr_assert_str_eq(seen.last.bn_name, "layer4.2.bn3");
    cr_assert_eq(seen.last.out_channels, 2048);
    cr_assert_eq(seen.last.out_size, 7);
}

static void find_strides(const struct arch_conv *conv, void *context)
{
    int *strides = context; /* of layer2.0.conv1 and layer2.0.conv2 */

    if (strcmp(conv->name, "layer2.0.conv1") == 0)
        strides[0] = conv->stride;
    if (strcmp(conv->name, "layer2.0.conv2") == 0)
        strides[1] = conv->stride;
}

Test(arch, v1_has_its_stride_in_the_1x1)
{
    int strides[2];

    arch_each_conv(arch_find("resnet50"), JOB_STEM_IMAGENET, 224, find_strides, strides);
    cr_assert(strides[0] == 1 && strides[1] == 2);
    arch_each_conv(arch_find("resnet50v1"), JOB_STEM_IMAGENET, 224, find_strides, strides);
    cr_assert(strides[0] == 2 && strides[1] == 1);
}

Test(arch, small_stem_keeps_the_size)
{
    struct seen seen = {0};

    arch_each_conv(arch_find("resnet18"), JOB_STEM_SMALL, 32, look, &seen);
    cr_assert_eq(seen.first.kernel, 3);
    cr_assert_eq(seen.first.out_size, 32);
    cr_assert_eq(seen.last.out_size, 4);
}

Test(arch, table_ends_and_names_are_found)
{
    size_t i = 0;

    for (; arch_at(i); i++)
        cr_assert_eq(arch_find(arch_at(i)->name), arch_at(i));
    cr_assert_eq(i, 9);
    cr_assert_null(arch_find("vgg16"));
}
