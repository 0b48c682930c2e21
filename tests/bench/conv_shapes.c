/*
 * Times the convolutions of a ResNet by themselves, a line a shape: milliseconds and GFLOP/s (of
 * the direct products) of forward, input gradient and weight gradient, for each way of computing
 * them that takes the shape. One thread. conv_shapes [ARCH [IMAGE_SIZE [BATCH [ONLY]]]]     ONLY:
 * shapes whose first layer's name holds it
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/net/arch.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/memory.h"
#include "worker/layers/conv.h"
#include "worker/layers/conv_winograd.h"

enum { SHAPES_MAX = 256, ROUNDS = 5 };

struct shapes {
    struct arch_conv conv[SHAPES_MAX];
    int times[SHAPES_MAX], count;
};

static bool same(const struct arch_conv *a, const struct arch_conv *b)
{
    return a->in_size == b->in_size && a->in_channels == b->in_channels &&
           a->out_channels == b->out_channels && a->kernel == b->kernel && a->stride == b->stride &&
           a->groups == b->groups;
}

static void add_shape(const struct arch_conv *c, void *context)
{
    struct shapes *s = context;
    for (int i = 0; i < s->count; i++)
        if (same(&s->conv[i], c)) {
            s->times[i]++;
            return;
        }
    if (s->count < SHAPES_MAX) {
        s->times[s->count] = 1;
        s->conv[s->count++] = *c;
    }
}

static float *noise(size_t n)
{
    float *x = memory_allocate(n * sizeof *x);
    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    if (!x)
        exit(1);
    return x;
}

struct data {
    struct conv c;
    float *x, *w, *z, *dx, *dw, *scratch;
    int batch;
};

static void run(const struct data *d, enum conv_direction direction)
{
    struct conv_backward b = {.w = d->w, .x = d->x, .dz = d->z, .dw = d->dw, .scratch = d->scratch};
    if (direction == CONV_FORWARD)
        conv_forward(&d->c, d->w, d->x, d->z, 0, d->batch, d->scratch, NULL, NULL);
    b.dx = direction == CONV_DATA ? d->dx : NULL;
    if (direction != CONV_FORWARD)
        conv_backward(&d->c, &b, 0, d->batch);
}

/* The best of several; CONV_DATA is both gradients less the weights' alone. */
static double seconds(const struct data *d, enum conv_direction direction)
{
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        double start = clock_monotonic();
        run(d, direction);
        best = fmin(best, clock_monotonic() - start);
    }
    return direction == CONV_DATA ? best - seconds(d, CONV_WEIGHTS) : best;
}

static void measure(struct data *d, enum conv_winograd m, const char *name)
{
    double flops = 2.0 * d->batch * (double)conv_weights(&d->c) * d->c.window.out * d->c.window.out;

    for (int i = 0; i < CONV_DIRECTIONS; i++)
        d->c.winograd[i] = m;
    d->scratch = noise(conv_scratch_floats(&d->c));
    printf("  %-12s", name);
    for (int i = 0; i < CONV_DIRECTIONS; i++) {
        double s = seconds(d, (enum conv_direction)i);
        printf(" %8.2f ms %6.1f", 1e3 * s, 1e-9 * flops / s);
    }
    printf("\n");
    free(d->scratch);
}

static void measure_shape(const struct arch_conv *a, int times, int batch)
{
    struct data d = {.c = conv_make(a->in_size, a->in_channels, a->out_channels, a->kernel,
                                    a->stride, a->padding, a->groups),
                     .batch = batch};
    size_t in = (size_t)(batch * a->in_size * a->in_size * a->in_channels);
    size_t out = (size_t)(batch * d.c.window.out * d.c.window.out * a->out_channels);

    d.x = noise(in);
    d.dx = noise(in);
    d.w = noise(conv_weights(&d.c));
    d.dw = noise(conv_weights(&d.c));
    d.z = noise(out);
    printf("%s: %d x (%d, %d, %d) -> %d, %dx%d, stride %d\n", a->name, times, a->in_size,
           a->in_size, a->in_channels, a->out_channels, a->kernel, a->kernel, a->stride);
    measure(&d, CONV_NO_WINOGRAD, "direct");
    if (conv_winograd_takes(&d.c)) {
        measure(&d, CONV_WINOGRAD_2, "winograd 2x2");
        measure(&d, CONV_WINOGRAD_4, "winograd 4x4");
    }
    free(d.x);
    free(d.dx);
    free(d.w);
    free(d.dw);
    free(d.z);
}

int main(int argc, char **argv)
{
    static struct shapes s;
    const struct arch *arch = arch_find(argc > 1 ? argv[1] : "resnet50");
    int size = argc > 2 ? atoi(argv[2]) : 224, batch = argc > 3 ? atoi(argv[3]) : 16;

    if (!arch || size < 32 || batch < 1)
        return 2;
    gemm_single_threaded();
    struct arch_shape shape = {
        .arch = arch, .stem = size < 64 ? JOB_STEM_SMALL : JOB_STEM_IMAGENET, .image_size = size};
    arch_each_conv(&shape, add_shape, &s);
    printf("%18sforward                 dx                  dw   (ms, GFLOP/s)\n", "");
    for (int i = 0; i < s.count; i++)
        if (argc < 5 || strstr(s.conv[i].name, argv[4]))
            measure_shape(&s.conv[i], s.times[i], batch);
    return 0;
}
