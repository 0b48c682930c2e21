#include "common/net/arch.h"

#include <stdio.h>
#include <string.h>

/* He et al. 2015 (18 to 152), Xie et al. 2017 (ResNeXt), with torchvision's names and numbers of
 * blocks. cnn is TensorFlow's official MNIST example (tensorflow/models, official/mnist/mnist.py),
 * which Cray's Scaling Deep Learning (ALCF 2018) trains. */
static const struct arch archs[] = {
    {"resnet50",         ARCH_RESIDUAL, true,  {3, 4, 6, 3},  1,  64, false},
    {"resnet18",         ARCH_RESIDUAL, false, {2, 2, 2, 2},  1,  64, false},
    {"resnet34",         ARCH_RESIDUAL, false, {3, 4, 6, 3},  1,  64, false},
    {"resnet101",        ARCH_RESIDUAL, true,  {3, 4, 23, 3}, 1,  64, false},
    {"resnet152",        ARCH_RESIDUAL, true,  {3, 8, 36, 3}, 1,  64, false},
    {"resnet50v1",       ARCH_RESIDUAL, true,  {3, 4, 6, 3},  1,  64, true },
    {"resnext50_32x4d",  ARCH_RESIDUAL, true,  {3, 4, 6, 3},  32, 4,  false},
    {"resnext101_32x4d", ARCH_RESIDUAL, true,  {3, 4, 23, 3}, 32, 4,  false},
    {"resnext101_32x8d", ARCH_RESIDUAL, true,  {3, 4, 23, 3}, 32, 8,  false},
    {"cnn",              ARCH_CNN,      false, {0},           1,  0,  false},
};

enum { CNN_FILTERS = 32, CNN_KERNEL = 5, CNN_HIDDEN = 1024 };

enum { BLURRED_CHANNELS = 16 /* at least, as in Composer */, BLUR_TAPS = 9 };

static const struct {
    const char *pointer, *value;
} cnn_defaults[] = {
    {"/model/classes",    "10"       },
    {"/model/image_size", "28"       },
    {"/model/dropout",    "0.4"      },
    {"/data/preprocess",  "\"whole\""},
    {"/data/augment",     "false"    },
};

static const char *const residual_keys[] = {
    "/model/stem",    "/model/bn_decay",           "/model/blur_pool",
    "/model/bn_init", "/model/zero_init_residual", "/model/winograd"};

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

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *arch_default(const struct arch *arch, const char *pointer)
{
    for (size_t i = 0; arch->family == ARCH_CNN && i < COUNT(cnn_defaults); i++)
        if (strcmp(cnn_defaults[i].pointer, pointer) == 0)
            return cnn_defaults[i].value;
    return NULL;
}

bool arch_uses(const struct arch *arch, const char *pointer)
{
    for (size_t i = 0; arch->family == ARCH_CNN && i < COUNT(residual_keys); i++)
        if (strcmp(residual_keys[i], pointer) == 0)
            return false;
    return true;
}

struct arch_shape arch_shape_of(const struct job_spec *spec)
{
    const struct arch *arch = arch_find(spec->model.arch);
    bool trains = spec->mode == JOB_MODE_TRAIN && spec->model.freeze_count;

    return (struct arch_shape){
        .arch = arch,
        .frozen =
            trains ? arch_frozen_parts(arch, spec->model.freeze, spec->model.freeze_count) : 0,
        .stem = spec->model.stem,
        .width = spec->model.width,
        .classes = (int)spec->model.classes,
        .blur_pool = spec->model.blur_pool,
        .image_size =
            (int)(spec->mode == JOB_MODE_EVAL ? job_spec_eval_size(spec) : spec->model.image_size)};
}

int arch_image_channels(const struct arch *arch)
{
    return arch->family == ARCH_CNN ? 1 : 3;
}

bool arch_takes_width(const struct arch *arch, double width)
{
    double group = arch->width_per_group * width;
    int channels = (int)group;

    return arch->groups == 1 ||
           (group == channels && channels >= 4 && !(channels & (channels - 1)));
}

static int arch_widen(const struct arch_shape *shape, int channels)
{
    enum { MULTIPLE = 8 };
    double width = shape->width > 0 ? shape->width : 1;
    int rounded = MULTIPLE * (int)(channels * width / MULTIPLE + 0.5);

    if (width == 1)
        return channels;
    return rounded < MULTIPLE ? MULTIPLE : rounded;
}

static int arch_inner_width(const struct arch_shape *shape, int planes)
{
    const struct arch *arch = shape->arch;

    if (arch->groups == 1)
        return arch_widen(shape, planes * arch->width_per_group / 64);
    double group = arch->width_per_group * (shape->width > 0 ? shape->width : 1);
    return (int)(planes * group / 64) * arch->groups;
}

struct walk {
    void (*visit)(const struct arch_conv *conv, void *context);
    void *context;
    int convs;
    int channels, size; /* of the input of the next convolution */
    bool blur_pool;
};

/* Visits a convolution with input channels x size x size. Returns the size of its output. A 1x1
 * reads every second pixel only, so its filter makes no others. */
static int arch_visit_conv(struct walk *w, const char *name, const char *bn_name, int in, int out,
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
    if (w->blur_pool && stride > 1 && in >= BLURRED_CHANNELS) {
        conv.blur_size = size;
        conv.blur_stride = kernel == 1 ? stride : 1;
        conv.stride /= conv.blur_stride;
        conv.in_size = kernel == 1 ? conv.out_size : size;
    }
    snprintf(conv.name, sizeof conv.name, "%s", name);
    snprintf(conv.bn_name, sizeof conv.bn_name, "%s", bn_name);
    w->convs++;
    if (w->visit)
        w->visit(&conv, w->context);
    return conv.out_size;
}

/* Visits convolution `number` of a block ("layer1.0.conv2", "layer1.0.bn2"). */
static int arch_block_conv(struct walk *w, const char *block, int number, int in, int out,
                           int kernel, int stride, int groups, int size)
{
    char name[48], bn_name[48];

    snprintf(name, sizeof name, "%s.conv%d", block, number);
    snprintf(bn_name, sizeof bn_name, "%s.bn%d", block, number);
    return arch_visit_conv(w, name, bn_name, in, out, kernel, stride, groups, size);
}

static void arch_visit_block(struct walk *w, const struct arch_shape *shape, const char *block,
                             int planes, int stride)
{
    const struct arch *arch = shape->arch;
    int in = w->channels, out = arch->bottleneck ? 4 * planes : planes, size = w->size;
    char name[48], bn_name[48];

    if (arch->bottleneck) {
        int width = arch_inner_width(shape, planes);
        int first = arch->stride_in_1x1 ? stride : 1;
        size = arch_block_conv(w, block, 1, in, width, 1, first, 1, size);
        size = arch_block_conv(w, block, 2, width, width, 3, stride / first, arch->groups, size);
        size = arch_block_conv(w, block, 3, width, out, 1, 1, 1, size);
    } else {
        int width = arch_widen(shape, planes);
        size = arch_block_conv(w, block, 1, in, width, 3, stride, 1, size);
        size = arch_block_conv(w, block, 2, width, out, 3, 1, 1, size);
    }
    if (stride != 1 || in != out) {
        snprintf(name, sizeof name, "%s.downsample.0", block);
        snprintf(bn_name, sizeof bn_name, "%s.downsample.1", block);
        arch_visit_conv(w, name, bn_name, in, out, 1, stride, 1, w->size);
    }
    w->channels = out;
    w->size = size;
}

static void arch_visit_residual(struct walk *w, const struct arch_shape *shape)
{
    int size = shape->image_size;
    char block[32];

    w->channels = 64;
    if (shape->stem == JOB_STEM_SMALL) {
        w->size = arch_visit_conv(w, "conv1", "bn1", 3, 64, 3, 1, 1, size);
    } else {
        w->size = arch_visit_conv(w, "conv1", "bn1", 3, 64, 7, 2, 1, size);
        w->size = (w->size + 2 - 3) / 2 + 1;
    }
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < shape->arch->blocks[stage]; i++) {
            snprintf(block, sizeof block, "layer%d.%d", stage + 1, i);
            arch_visit_block(w, shape, block, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
        }
}

static void arch_visit_cnn(struct walk *w, const struct arch_shape *shape)
{
    int first = arch_widen(shape, CNN_FILTERS), second = arch_widen(shape, 2 * CNN_FILTERS);
    int size = shape->image_size;

    size = arch_visit_conv(w, "conv1", "", 1, first, CNN_KERNEL, 1, 1, size) / ARCH_CNN_POOL;
    arch_visit_conv(w, "conv2", "", first, second, CNN_KERNEL, 1, 1, size);
}

int arch_each_conv(const struct arch_shape *shape,
                   void (*visit)(const struct arch_conv *conv, void *context), void *context)
{
    struct walk w = {.visit = visit, .context = context, .blur_pool = shape->blur_pool};

    if (shape->arch->family == ARCH_CNN)
        arch_visit_cnn(&w, shape);
    else
        arch_visit_residual(&w, shape);
    return w.convs;
}

int arch_linears(const struct arch_shape *shape, struct arch_linear out[ARCH_LINEARS])
{
    if (shape->arch->family == ARCH_RESIDUAL) {
        out[0] =
            (struct arch_linear){"fc", shape->arch->bottleneck ? 2048 : 512, shape->classes, 1};
        return 1;
    }
    int size = shape->image_size / ARCH_CNN_POOL / ARCH_CNN_POOL,
        hidden = arch_widen(shape, CNN_HIDDEN);
    int features = size * size * arch_widen(shape, 2 * CNN_FILTERS);
    out[0] = (struct arch_linear){"fc1", features, hidden, size * size};
    out[1] = (struct arch_linear){"fc2", hidden, shape->classes, 1};
    return 2;
}

static double arch_weights_of(const struct arch_conv *conv)
{
    return (double)conv->out_channels * conv->in_channels / conv->groups * conv->kernel *
           conv->kernel;
}

static const char *const *arch_parts(const struct arch *arch)
{
    static const char *const residual[] = {"conv1", "layer1", "layer2", "layer3", "layer4", NULL};
    static const char *const cnn[] = {"conv1", "conv2", "fc1", NULL};

    return arch->family == ARCH_CNN ? cnn : residual;
}

int arch_frozen_parts(const struct arch *arch, char *const *names, size_t count)
{
    const char *const *parts = arch_parts(arch);
    size_t all = 0, found = 0;

    while (parts[all])
        all++;
    if (count == 1 && strcmp(names[0], "backbone") == 0)
        return (int)all;
    for (size_t i = 0; i < count && i < all; i++)
        for (size_t k = 0; k < count; k++)
            found += strcmp(names[k], parts[i]) == 0;
    return found == count ? (int)count : -1;
}

char *arch_list_parts(const struct arch *arch, char *text, size_t bytes)
{
    size_t used = 0;

    for (const char *const *part = arch_parts(arch); *part && used < bytes; part++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s%s", used ? ", " : "", *part,
                                 !used && arch->family == ARCH_RESIDUAL ? " (with bn1)" : "");
    return text;
}

bool arch_is_frozen(const struct arch_shape *shape, const char *name)
{
    const char *const *parts = arch_parts(shape->arch);

    if (shape->frozen > 0 && strncmp(name, "bn1.", 4) == 0)
        return true;
    for (int i = 0; i < shape->frozen && parts[i]; i++) {
        size_t length = strlen(parts[i]);
        if (strncmp(name, parts[i], length) == 0 && (!name[length] || name[length] == '.'))
            return true;
    }
    return false;
}

struct arch_count {
    const struct arch_shape *shape;
    int64_t parameters;
    double macs;
};

static void arch_count_conv(const struct arch_conv *conv, void *context)
{
    struct arch_count *c = context;
    int vectors = *conv->bn_name ? 2 : 1; /* gamma and beta, or a bias */

    if (arch_is_frozen(c->shape, conv->name))
        return;
    c->parameters += (int64_t)arch_weights_of(conv) + vectors * (int64_t)conv->out_channels;
    c->macs += arch_weights_of(conv) * conv->out_size * conv->out_size;
    if (conv->blur_size)
        c->macs += (double)BLUR_TAPS * conv->in_channels * conv->in_size * conv->in_size;
}

static struct arch_count arch_count_trained(const struct arch_shape *shape)
{
    struct arch_count c = {.shape = shape};
    struct arch_linear linears[ARCH_LINEARS];

    for (int i = arch_linears(shape, linears) - 1; i >= 0; i--) {
        if (arch_is_frozen(shape, linears[i].name))
            continue;
        c.parameters += (linears[i].in + (int64_t)1) * linears[i].out;
        c.macs += (double)linears[i].in * linears[i].out;
    }
    arch_each_conv(shape, arch_count_conv, &c);
    if (shape->blur_pool && shape->arch->family == ARCH_RESIDUAL &&
        shape->stem == JOB_STEM_IMAGENET && !shape->frozen) {
        double pooled = ((shape->image_size + 1) / 2 + 1) / 2;
        c.macs += BLUR_TAPS * 64 * pooled * pooled;
    }
    return c;
}

static struct arch_count arch_count_all(const struct arch_shape *shape)
{
    struct arch_shape whole = *shape;

    whole.frozen = 0;
    return arch_count_trained(&whole);
}

int64_t arch_parameters(const struct arch_shape *shape)
{
    return arch_count_all(shape).parameters;
}

int64_t arch_trained_parameters(const struct arch_shape *shape)
{
    return arch_count_trained(shape).parameters;
}

double arch_forward_macs(const struct arch_shape *shape)
{
    return arch_count_all(shape).macs;
}

double arch_training_macs(const struct arch_shape *shape)
{
    return arch_count_all(shape).macs + 2 * arch_count_trained(shape).macs;
}

static bool arch_is_multiple_of_32(int channels)
{
    return channels > 0 && channels % 32 == 0;
}

static void arch_check_bf16(const struct arch_conv *c, void *context)
{
    bool *takes = context;
    int group = c->in_channels / c->groups;

    if (!arch_is_multiple_of_32(c->out_channels) ||
        (!arch_is_multiple_of_32(c->in_channels) && c->in_channels > 3))
        *takes = false;
    if (c->groups > 1 && 32 % group && !arch_is_multiple_of_32(group))
        *takes = false;
}

bool arch_takes_bf16(const struct arch_shape *shape)
{
    bool takes = shape->arch->family != ARCH_CNN;

    arch_each_conv(shape, arch_check_bf16, &takes);
    return takes;
}
