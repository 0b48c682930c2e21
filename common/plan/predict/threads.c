#include "common/plan/predict/threads.h"

#include <math.h>

#include "common/net/network.h"

#define IMAGES_MAX 4096

struct threads_fit {
    double fixed, first, threads, images, size;
};

static const struct threads_fit basic = {0.015, 0.0104, 1.13, 0.52, 1.00};
static const struct threads_fit bottleneck = {0.015, 0.0234, 0.93, 0.71, 1.37};
static const struct threads_fit grouped = {0.008, 0.0474, 0.67, 0.98, 1.75};
static const struct threads_fit cnn = {0, 0.057, 1.18, 1.02, 1.95};
static const struct threads_fit basic_bf16 = {0, 0.0216, 1.192, 0.754, 1.39};
static const struct threads_fit bottleneck_bf16 = {0, 0.0224, 1.087, 0.676, 1.29};
static const struct threads_fit grouped_bf16 = {0, 0.0220, 1.131, 0.761, 1.48};

static const struct threads_fit *threads_fit_of(const struct job_spec *spec,
                                                const struct arch *arch)
{
    bool bf16 = spec->precision == JOB_PRECISION_BF16;

    if (arch->family == ARCH_CNN)
        return bf16 ? NULL : &cnn;
    if (arch->groups > 1)
        return bf16 ? &grouped_bf16 : &grouped;
    if (arch->bottleneck)
        return bf16 ? &bottleneck_bf16 : &bottleneck;
    return bf16 ? &basic_bf16 : &basic;
}

enum { SIZE = 224, CNN_SIZE = 28 }; /* that the networks are made for */

/* Of images that the usual stem would make as large as this one does. */
static double threads_size_behind_stem(const struct arch_shape *shape)
{
    struct network network;

    if (shape->arch->family == ARCH_CNN)
        return (double)shape->image_size * SIZE / CNN_SIZE;
    network_make(shape, &network);
    return 4.0 * network.pooled_size;
}

double plan_threads_keep(const struct job_spec *spec, int64_t threads, int64_t images)
{
    struct arch_shape shape = arch_shape_of(spec);
    const struct threads_fit *f = threads_fit_of(spec, shape.arch);

    if (!f || threads < 1 || images < 1)
        return 0;
    if (threads == 1)
        return 1;
    double lost =
        f->first * pow((double)threads, f->threads) /
        (pow((double)images, f->images) * pow(threads_size_behind_stem(&shape) / SIZE, f->size));
    return 1 / (1 + f->fixed + lost);
}

int64_t plan_threads_images(const struct job_spec *spec, int64_t threads)
{
    int64_t low = 1, high = IMAGES_MAX;

    if (plan_threads_keep(spec, threads, high) < PLAN_THREADS_KEEP)
        return 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (plan_threads_keep(spec, threads, middle) < PLAN_THREADS_KEEP)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
