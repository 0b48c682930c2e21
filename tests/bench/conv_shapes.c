/*
 * Times the convolutions of a ResNet by themselves, a line a shape: milliseconds and GFLOP/s (of
 * the direct products) of forward, input gradient and weight gradient, for each way of computing
 * them that takes the shape, and with bf16. One thread, by its processor time. conv_shapes [ARCH
 * [IMAGE_SIZE [BATCH [ONLY]]]]     ONLY: shapes whose first layer's name holds it
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/net/arch.h"
#include "worker/kernels/gemm.h"
#include "worker/team/memory.h"
#include "worker/layers/conv_bf16.h"
#include "worker/layers/conv_bf16_grid.h"
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
    float *x, *w, *z, *dx, *dw;
    float *own;
    struct conv_memory memory;
    int batch;
};

static void run(const struct data *d, enum conv_direction direction)
{
    struct conv_backward b = {.w = d->w, .x = d->x, .dz = d->z, .dw = d->dw};
    if (direction == CONV_FORWARD)
        conv_forward(&d->c, d->w, d->x, d->z, d->batch, PARALLEL_ALL, &d->memory, NULL, NULL);
    b.dx = direction == CONV_DATA ? d->dx : NULL;
    if (direction != CONV_FORWARD)
        conv_backward(&d->c, &b, d->batch, PARALLEL_ALL, &d->memory);
}

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of several; CONV_DATA is both gradients less the weights' alone. */
static double seconds(const struct data *d, enum conv_direction direction)
{
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        double start = processor_time();
        run(d, direction);
        best = fmin(best, processor_time() - start);
    }
    return direction == CONV_DATA ? best - seconds(d, CONV_WEIGHTS) : best;
}

static void measure(struct data *d, enum conv_winograd m, const char *name)
{
    double flops = 2.0 * d->batch * (double)conv_weights(&d->c) * d->c.window.out * d->c.window.out;

    for (int i = 0; i < CONV_DIRECTIONS; i++)
        d->c.winograd[i] = m;
    d->memory = (struct conv_memory){.own = &d->own,
                                     .team_floats = conv_team_floats(&d->c, d->batch, 1),
                                     .own_floats = conv_own_floats(&d->c, 1),
                                     .threads = 1};
    d->memory.team = noise(d->memory.team_floats);
    d->own = noise(d->memory.own_floats);
    printf("  %-12s", name);
    for (int i = 0; i < CONV_DIRECTIONS; i++) {
        double s = seconds(d, (enum conv_direction)i);
        printf(" %8.2f ms %6.1f", 1e3 * s, 1e-9 * flops / s);
    }
    printf("\n");
    free(d->memory.team);
    free(d->own);
}

/* As struct data, of bf16. */
struct data_bf16 {
    struct conv c;
    float *images, *w, *dw;
    bf16 *x, *z, *dx, *forward, *back;
    struct conv_bf16_scratch scratch;
    enum conv_winograd winograd; /* of all directions */
    float *own;
    struct conv_memory memory;
    int batch;
};

static void run_bf16_winograd(const struct data_bf16 *d, enum conv_direction direction)
{
    struct conv_part part = {&d->c, d->batch, PARALLEL_ALL, &d->memory};
    struct conv_winograd_sums sums = {
        .m = d->winograd, .half = true, .x = d->x, .dz = d->z, .dw = d->dw};
    struct conv_winograd_pass pass = {.m = d->winograd, .half = true, .w = d->w};

    pass.turned = direction == CONV_DATA;
    pass.from = pass.turned ? d->z : d->x;
    pass.to = pass.turned ? d->dx : d->z;
    if (direction != CONV_FORWARD)
        conv_winograd_sum(&part, &sums);
    if (direction != CONV_WEIGHTS)
        conv_winograd_run(&part, &pass);
}

static void run_bf16(const struct data_bf16 *d, enum conv_direction direction)
{
    struct conv_bf16_backward b = {.packed = d->back,
                                   .x = d->x ? (void *)d->x : d->images,
                                   .dz = d->z,
                                   .dx = direction == CONV_DATA && d->x ? d->dx : NULL,
                                   .dw = d->dw,
                                   .scratch = d->scratch};
    size_t lines = (size_t)(d->batch * d->c.window.out);
    if (d->winograd)
        run_bf16_winograd(d, direction);
    else if (direction == CONV_FORWARD)
        conv_bf16_forward(&d->c, d->forward, b.x, d->z, 0, lines, d->scratch, NULL, NULL, false);
    else
        conv_bf16_backward(&d->c, &b, 0, lines);
}

static double seconds_bf16(const struct data_bf16 *d, enum conv_direction direction)
{
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        double start = processor_time();
        run_bf16(d, direction);
        best = fmin(best, processor_time() - start);
    }
    return direction == CONV_DATA ? best - seconds_bf16(d, CONV_WEIGHTS) : best;
}

static double seconds_of_packing(const struct data_bf16 *d)
{
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        double start = processor_time();
        conv_bf16_pack(&d->c, CONV_FORWARD, d->w, 0, conv_bf16_panels(&d->c, CONV_FORWARD),
                       d->forward);
        if (d->back)
            conv_bf16_pack(&d->c, CONV_DATA, d->w, 0, conv_bf16_panels(&d->c, CONV_DATA), d->back);
        best = fmin(best, processor_time() - start);
    }
    return best;
}

static bf16 *noise_bf16(size_t n)
{
    float *x = noise(n);
    bf16 *y = memory_allocate(n * sizeof *y);
    if (!y)
        exit(1);
    bf16_from_floats(x, n, y);
    free(x);
    return y;
}

static void measure_bf16_way(struct data_bf16 *d, enum conv_winograd m, const char *name)
{
    double flops = 2.0 * d->batch * (double)conv_weights(&d->c) * d->c.window.out * d->c.window.out;

    d->winograd = m;
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        d->c.winograd[i] = m;
    d->memory = (struct conv_memory){.own = &d->own, .threads = 1};
    d->memory.team = noise(conv_winograd_team_floats(&d->c, d->batch, 1));
    d->own = noise(conv_winograd_own_floats(&d->c, 1));
    printf("  %-12s", name);
    for (int i = 0; i < CONV_DIRECTIONS; i++) {
        double s = seconds_bf16(d, (enum conv_direction)i);
        printf(" %8.2f ms %6.1f", 1e3 * s, 1e-9 * flops / s);
    }
    free(d->memory.team);
    free(d->own);
}

static void measure_bf16(const struct data *from, size_t in, size_t out)
{
    bool first = from->c.window.channels < BF16_CHUNK;
    struct bf16_grid grid = bf16_grid_of(&from->c);
    struct data_bf16 d = {.c = from->c,
                          .images = from->x,
                          .w = from->w,
                          .dw = from->dw,
                          .x = first ? NULL : noise_bf16(in),
                          .z = noise_bf16(out),
                          .dx = noise_bf16(in),
                          .forward = noise_bf16(conv_bf16_packed(&from->c, CONV_FORWARD)),
                          .scratch.memory =
                              memory_allocate(bf16_scratch_of(&grid, BF16_BACKWARD, NULL).bytes),
                          .batch = from->batch};

    if (!first)
        d.back = noise_bf16(conv_bf16_packed(&d.c, CONV_DATA));
    measure_bf16_way(&d, CONV_NO_WINOGRAD, "bf16");
    printf("   (packing %.2f ms)\n", 1e3 * seconds_of_packing(&d));
    if (conv_winograd_takes(&d.c)) {
        measure_bf16_way(&d, CONV_WINOGRAD_2, "bf16 2x2");
        printf("\n");
        measure_bf16_way(&d, CONV_WINOGRAD_4, "bf16 4x4");
        printf("\n");
    }
    void *all[] = {d.x, d.z, d.dx, d.forward, d.back, d.scratch.memory};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
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
    if (conv_bf16_takes(&d.c))
        measure_bf16(&d, in, out);
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
    struct arch_shape shape = {.arch = arch, .stem = JOB_STEM_IMAGENET, .image_size = size};
    arch_each_conv(&shape, add_shape, &s);
    printf("%18sforward                 dx                  dw   (ms, GFLOP/s)\n", "");
    for (int i = 0; i < s.count; i++)
        if (argc < 5 || strstr(s.conv[i].name, argv[4]))
            measure_shape(&s.conv[i], s.times[i], batch);
    return 0;
}
