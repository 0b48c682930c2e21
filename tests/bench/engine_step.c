/* Times training steps of the engine alone: no data, no MPI. Prints one line a run and JSON with
 * --json. */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/tune_all.h"
#include "common/clock.h"
#include "worker/model/autotune.h"
#include "worker/model/forward_backward.h"
#include "worker/model/init.h"
#include "worker/optim/optimizer.h"

struct options {
    struct arch arch;
    int image_size, batch, threads, steps, classes;
    bool blur, small_stem, json, eval, direct, bf16;
    double width; /* of the channels within a block; 0: as the network has them */
    int winograd; /* 2 or 4: of all layers that take it; 0: what was measured to be best */
    bool cpu;     /* time by this process's processor time: on a machine that others use too; of one
                     thread */
};

static bool take_arch(struct arch *arch, const char *name)
{
    const struct arch *found = arch_find(name);

    if (found)
        *arch = *found;
    return found;
}

/* The first stages of it alone. */
static void cut_arch(struct arch *arch, int stages)
{
    for (int i = stages; i < 4; i++)
        arch->blocks[i] = 0;
}

enum phase { FORWARD, BACKWARD, OPTIM, PHASES };

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option options[] = {
        {"arch",             required_argument, NULL, 'a'},
        {"image-size",              required_argument, NULL, 's'},
        {"batch",                  required_argument, NULL, 'b'},
        {"threads",required_argument, NULL, 't'},
        {"steps",               required_argument, NULL, 'n'},
        {"classes",            required_argument, NULL, 'c'},
        {"small-stem",              no_argument, NULL, 'm'},
        {"blur",                  no_argument, NULL, 'B'},
        {"json",              no_argument, NULL, 'j'},
        {"eval",               no_argument, NULL, 'e'},
        {"no-winograd",            no_argument, NULL, 'w'},
        {"bf16",              no_argument, NULL, 'h'},
        {"winograd",                  required_argument, NULL, 'W'},
        {"cpu-time",no_argument, NULL, 'p'},
        {"width",               required_argument, NULL, 'd'},
        {"stages",       required_argument, NULL, 'g'},
        {0             },
    };
    int c, stages = 4;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (c) {
        case 'a':
            if (!take_arch(&o->arch, optarg))
                return -1;
            break;
        case 's':
            o->image_size = atoi(optarg);
            break;
        case 'b':
            o->batch = atoi(optarg);
            break;
        case 't':
            o->threads = atoi(optarg);
            break;
        case 'n':
            o->steps = atoi(optarg);
            break;
        case 'c':
            o->classes = atoi(optarg);
            break;
        case 'm':
            o->small_stem = true;
            break;
        case 'B':
            o->blur = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 'e':
            o->eval = true;
            break;
        case 'w':
            o->direct = true;
            break;
        case 'd':
            o->width = atof(optarg);
            break;
        case 'g':
            stages = atoi(optarg);
            break;
        case 'h':
            o->bf16 = true;
            break;
        case 'W':
            o->winograd = atoi(optarg);
            break;
        case 'p':
            o->cpu = true;
            break;
        default:
            return -1;
        }
    if (stages < 1)
        return -1;
    cut_arch(&o->arch, stages);
    return optind == argc ? 0 : -1;
}

static float *random_images(const struct options *o)
{
    size_t count = (size_t)o->batch * (size_t)o->image_size * (size_t)o->image_size * 3;
    float *x = malloc(count * sizeof *x);
    srand(1);
    for (size_t i = 0; x && i < count; i++)
        x[i] = (float)rand() / (float)RAND_MAX * 4 - 2;
    return x;
}

static double now(const struct options *o)
{
    struct timespec t;
    if (!o->cpu)
        return clock_monotonic();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double step(struct model *m, struct optimizer *s, const struct options *o,
                   const float *images, const int32_t *labels, float *logits,
                   double seconds[PHASES])
{
    double t0 = now(o), loss = 0;
    if (o->eval)
        model_predict(m, images, o->batch, logits);
    else
        loss = model_forward(m, images, labels, o->batch, NULL);
    double t1 = now(o);
    if (!o->eval)
        model_backward(m, 1, false, NULL, NULL);
    double t2 = now(o);
    if (!o->eval)
        optimizer_step(s, 0.01);
    seconds[FORWARD] = t1 - t0;
    seconds[BACKWARD] = t2 - t1;
    seconds[OPTIM] = now(o) - t2;
    return loss;
}

static void print(const struct options *o, const struct model *m, const double best[PHASES],
                  double loss)
{
    double total = best[FORWARD] + best[BACKWARD] + best[OPTIM];
    struct arch_shape shape = {.arch = &o->arch,
                               .stem = o->small_stem ? JOB_STEM_SMALL : JOB_STEM_IMAGENET,
                               .classes = o->classes,
                               .width = o->width,
                               .image_size = o->image_size};
    double macs = arch_forward_macs(&shape);
    double gflops = 2e-9 * macs * (o->eval ? 1 : 3) * o->batch / total;

    printf(o->json
               ? "{\"images_per_sec\": %.2f, \"gflops\": %.2f, \"forward_ms\": %.2f, "
                 "\"backward_ms\": %.2f, "
                 "\"optim_ms\": %.2f, \"memory_bytes\": %zu, \"bytes_per_image\": %.0f, "
                 "\"gb_per_sec\": "
                 "%.2f, \"loss\": %.6g}\n"
               : "%8.2f images/s  %7.2f GFLOP/s  forward %.2f ms  backward %.2f ms  optim %.2f ms  "
                 "memory %zu bytes  moved %.0f bytes per image, %.2f GB/s  loss %.6g\n",
           o->batch / total, gflops, 1e3 * best[FORWARD], 1e3 * best[BACKWARD], 1e3 * best[OPTIM],
           model_memory_bytes(m), model_bytes_per_image(m),
           1e-9 * model_bytes_per_image(m) * o->batch / total, loss);
}

static int run(const struct options *o, struct model *m, struct optimizer *s)
{
    float *images = random_images(o),
          *logits = malloc((size_t)o->batch * (size_t)o->classes * sizeof(float));
    int32_t *labels = calloc((size_t)o->batch, sizeof *labels);
    double best[PHASES] = {INFINITY, INFINITY, INFINITY}, loss = 0;

    if (!images || !logits || !labels)
        return 1;
    for (int i = 0; i < o->batch; i++)
        labels[i] = i % o->classes;
    model_init(m, 1);
    for (int i = 0; i <= o->steps; i++) {
        double seconds[PHASES];
        loss = step(m, s, o, images, labels, logits, seconds);
        /* The first step warms up; of the others the fastest counts, because neighbours only slow
         * one down. */
        if (i > 0 && seconds[0] + seconds[1] + seconds[2] < best[0] + best[1] + best[2])
            memcpy(best, seconds, sizeof best);
    }
    print(o, m, best, loss);
    free(images);
    free(logits);
    free(labels);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.image_size = 224, .batch = 16, .threads = 1, .steps = 3, .classes = 1000};
    struct error e;
    struct model *m;
    struct optimizer *s = NULL;

    take_arch(&o.arch, "resnet50");
    if (parse(argc, argv, &o)) {
        fprintf(
            stderr,
            "usage: engine_step [--arch A] [--image-size S] [--batch B] [--threads T] [--steps N]\n"
            "                   [--classes K] [--small-stem] [--blur] [--eval] [--json] "
            "[--cpu-time]\n"
            "                   [--no-winograd | --winograd 2|4] [--bf16] [--width W]\n"
            "                   [--stages 1|2|3|4]\n");
        return 2;
    }
    struct model_config c = {.arch = &o.arch,
                             .stem = o.small_stem ? JOB_STEM_SMALL : JOB_STEM_IMAGENET,
                             .classes = o.classes,
                             .width = o.width,
                             .image_size = o.image_size,
                             .batch = o.batch,
                             .inference = o.eval,
                             .blur_pool = o.blur,
                             .threads = o.threads,
                             .bn_momentum = 0.1,
                             .precision = o.bf16 ? JOB_PRECISION_BF16 : JOB_PRECISION_FP32,
                             .zero_init_residual = true};
    struct model_tuning tuning = {0};
    char problem[256];
    if (o.winograd)
        tune_all(&c, (enum conv_winograd)o.winograd, &tuning);
    else if (!o.direct)
        model_tune(&c, &tuning, problem);
    c.tuning = &tuning;
    struct job_spec spec = {
        .optimizer = {.momentum = 0.9, .weight_decay = 5e-5}
    };
    if (model_create(&c, &m, &e) || (!o.eval && optimizer_create(m, &spec, 0.01, &s, &e))) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    int status = run(&o, m, s);
    optimizer_destroy(s);
    model_destroy(m);
    return status;
}
