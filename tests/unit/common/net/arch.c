#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/net/arch.h"
#include "common/net/bf16_grid.h"

static struct arch_shape shape_of(const char *name)
{
    return (struct arch_shape){.arch = arch_find(name), .classes = 1000, .image_size = 224};
}

static int64_t parameters(const char *name)
{
    struct arch_shape shape = shape_of(name);
    return arch_parameters(&shape);
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
    struct arch_shape shape = shape_of(name);
    return arch_forward_macs(&shape) / 1e9;
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

static void look_at_conv(const struct arch_conv *conv, void *context)
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
    struct arch_shape shape = shape_of("resnet50");
    struct seen seen = {0};

    cr_assert_eq(arch_each_conv(&shape, look_at_conv, &seen), 53);
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
    struct arch_shape v15 = shape_of("resnet50"), v1 = shape_of("resnet50v1");
    int strides[2];

    arch_each_conv(&v15, find_strides, strides);
    cr_assert(strides[0] == 1 && strides[1] == 2);
    arch_each_conv(&v1, find_strides, strides);
    cr_assert(strides[0] == 2 && strides[1] == 1);
}

static void find_filters(const struct arch_conv *conv, void *context)
{
    int *found = context;

    if (!conv->blur_size)
        return;
    found[0]++;
    found[1] += conv->blur_stride == 2;
    cr_assert_eq((conv->blur_size - 1) / conv->blur_stride + 1, conv->in_size, "%s", conv->name);
    cr_assert_eq(conv->stride * conv->blur_stride, 2, "%s", conv->name);
    cr_assert_neq(conv->in_channels, 3);
}

/* Before the strided 3x3 and the shortcut of three stages; the 1x1 has its stride in the filter. */
Test(arch, blur_pool_filters_before_strides)
{
    struct arch_shape plain = shape_of("resnet50"), blurred = plain;
    double filters =
        9.0 * (56 * 56 * (128 + 64) + 28 * 28 * (256 + 256) + 14 * 14 * (512 + 512) + 7 * 7 * 1024);
    int found[2] = {0};

    blurred.blur_pool = true;
    arch_each_conv(&blurred, find_filters, found);
    cr_assert(found[0] == 6 && found[1] == 3, "%d, %d", found[0], found[1]);
    cr_assert_float_eq(arch_forward_macs(&blurred) - arch_forward_macs(&plain), filters, 1);
    cr_assert_eq(arch_parameters(&blurred), arch_parameters(&plain));
    blurred.arch = arch_find("resnet50v1");
    found[0] = found[1] = 0;
    arch_each_conv(&blurred, find_filters, found);
    cr_assert(found[0] == 6 && found[1] == 6, "%d, %d", found[0], found[1]);
}

Test(arch, small_stem_keeps_the_size)
{
    struct arch_shape shape = {
        .arch = arch_find("resnet18"), .stem = JOB_STEM_SMALL, .image_size = 32};
    struct seen seen = {0};

    arch_each_conv(&shape, look_at_conv, &seen);
    cr_assert_eq(seen.first.kernel, 3);
    cr_assert_eq(seen.first.out_size, 32);
    cr_assert_eq(seen.last.out_size, 4);
}

/* torchvision's wide_resnet50_2 and wide_resnet101_2; a ResNeXt of width 2 has groups twice as
 * wide. */
Test(arch, width_is_torchvisions_width_per_group)
{
    struct arch_shape shape = shape_of("resnet50");

    shape.width = 2;
    cr_assert_eq(arch_parameters(&shape), 68883240);
    shape.arch = arch_find("resnet101");
    cr_assert_eq(arch_parameters(&shape), 126886696);
    shape.arch = arch_find("resnext101_32x4d");
    cr_assert_eq(arch_parameters(&shape), 88791336);
}

static void check_multiple(const struct arch_conv *conv, void *context)
{
    (void)context;
    cr_assert(conv->out_channels % 8 == 0 && conv->out_channels >= 8, "%s: %d", conv->name,
              conv->out_channels);
}

Test(arch, any_width_gives_multiples_of_8)
{
    static const double widths[] = {0.0625, 0.25, 0.3, 0.77, 1.01, 1.5, 7.99};
    static const char *const names[] = {"resnet18", "resnet50", "cnn"};

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int k = 0; k < 3; k++) {
            struct arch_shape shape = shape_of(names[k]);
            shape.width = widths[i];
            arch_each_conv(&shape, check_multiple, NULL);
        }
}

Test(arch, groups_take_few_widths)
{
    const struct arch *four = arch_find("resnext50_32x4d"), *eight = arch_find("resnext101_32x8d");

    cr_assert(arch_takes_width(four, 1) && arch_takes_width(four, 2) && arch_takes_width(four, 8));
    cr_assert_not(arch_takes_width(four, 0.5) || arch_takes_width(four, 1.5));
    cr_assert(arch_takes_width(eight, 0.5));
    cr_assert_not(arch_takes_width(eight, 0.25) || arch_takes_width(eight, 3));
    cr_assert(arch_takes_width(arch_find("resnet50"), 0.37));
}

Test(arch, bf16_wants_channels_in_multiples_of_32)
{
    static const struct {
        const char *arch;
        double width;
        bool takes;
    } cases[] = {
        {"resnet50",         1,    true },
        {"resnet18",         1,    true },
        {"resnext101_32x4d", 1,    true },
        {"resnext101_32x8d", 1,    true },
        {"resnet50",         2,    true },
        {"resnet50",         1.5,  true },
        {"resnet50",         0.75, false},
        {"resnext50_32x4d",  2,    true },
        {"cnn",              1,    false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arch_shape shape = {.arch = arch_find(cases[i].arch),
                                   .stem = JOB_STEM_IMAGENET,
                                   .width = cases[i].width,
                                   .image_size = 224};
        cr_assert_eq(arch_takes_bf16(&shape), cases[i].takes, "%s of width %g", cases[i].arch,
                     cases[i].width);
    }
}

/* TensorFlow's official/mnist: 832 + 51264 + 3212288 + 10250 numbers. */
Test(arch, cnn_is_that_of_the_mnist_example)
{
    struct arch_shape shape = {.arch = arch_find("cnn"), .classes = 10, .image_size = 28};
    struct arch_linear linears[ARCH_LINEARS];

    cr_assert_eq(arch_parameters(&shape), 3274634);
    cr_assert_float_eq(arch_forward_macs(&shape),
                       28 * 28 * 25 * 32 + 14 * 14 * 25 * 32 * 64 + 3136 * 1024 + 10240, 0.5);
    cr_assert_eq(arch_linears(&shape, linears), 2);
    cr_assert(linears[0].in == 7 * 7 * 64 && linears[0].pixels == 49 && linears[0].out == 1024);
    cr_assert(linears[1].in == 1024 && linears[1].out == 10);
    cr_assert_eq(arch_image_channels(shape.arch), 1);
}

Test(arch, table_ends_and_names_are_found)
{
    size_t i = 0;

    for (; arch_at(i); i++)
        cr_assert_eq(arch_find(arch_at(i)->name), arch_at(i));
    cr_assert_eq(i, 10);
    cr_assert_null(arch_find("vgg16"));
}

/* A thread of bf16 works in memory for its share of the batch, and has no whole dw of its own. */
Test(arch, threads_of_bf16_take_little_memory)
{
    struct arch_shape shape = shape_of("resnet50");
    static const int threads[] = {22, 24, 48};

    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        struct bf16_thread_bytes b = bf16_thread_bytes_of(&shape, true, 48, threads[i]);
        cr_expect_lt(b.scratch + b.dw, (size_t)4 << 20, "%d threads: %zu and %zu bytes", threads[i],
                     b.scratch, b.dw);
    }
}
