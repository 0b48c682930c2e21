/*
 * The optimiser's update against mere copying: bytes a second of SGD with weight decay, of LARS
 * (whose norms read weights and gradients once more), and of moving the same bytes as SGD does
 * without any arithmetic worth the name (reads weights, gradients and momentum, writes weights and
 * momentum). memcpy is slower than that: it reads before it writes what is not yet in the cache.
 *   optimizer [--threads T]      ResNet-50's parameters; prints one JSON object; run it pinned for
 * the figure of T cores.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "worker/kernels/parallel.h"
#include "worker/optim/lars.h"
#include "worker/optim/sgd.h"

enum { ROUNDS = 15 };

struct bench {
    struct model *model;
    struct sgd *sgd;
    struct lars *lars;
    int threads;
};

typedef float four __attribute__((vector_size(16)));

static void copy_part(int thread, int first, int end, void *context)
{
    struct bench *b = context;
    size_t all = model_param_count(b->model) / 4, part = all / (size_t)b->threads;
    size_t last = end == b->threads ? all : (size_t)end * part;
    four *w = (four *)model_params(b->model), *v = (four *)sgd_velocity(b->sgd);
    const four *g = (const four *)model_grads(b->model);

    (void)thread;
    for (size_t i = (size_t)first * part; i < last; i++) {
        four before = w[i];
        w[i] = v[i];
        v[i] = before + g[i];
    }
}

static void run_copy(struct bench *b)
{
    parallel_run(b->threads, b->threads, copy_part, b);
}

static void run_sgd(struct bench *b)
{
    sgd_step(b->sgd, 1e-6);
}

static void run_lars(struct bench *b)
{
    lars_step(b->lars, 1e-6);
}

enum { COPY, SGD, LARS, WORKS };

/* How often an element is read or written, and what does it. */
static const struct {
    int passes;
    void (*run)(struct bench *b);
} works[WORKS] = {
    [COPY] = {5, run_copy},
    [SGD] = {5, run_sgd },
    [LARS] = {7, run_lars},
};

/* The best of interleaved rounds: neighbours only slow one down. */
static void measure(struct bench *b, double best[WORKS])
{
    double bytes = (double)model_param_count(b->model) * sizeof(float);

    for (int i = 0; i < WORKS; i++)
        best[i] = 0;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < WORKS; i++) {
            double start = clock_monotonic();
            works[i].run(b);
            best[i] = fmax(best[i], works[i].passes * bytes / (clock_monotonic() - start));
        }
}

static int create(struct bench *b, struct error *e)
{
    struct model_config c = {.arch = arch_find("resnet50"),
                             .classes = 1000,
                             .image_size = 32,
                             .batch = 1,
                             .threads = b->threads,
                             .bn_momentum = 0.1};
    struct sgd_config sgd = {.momentum = 0.9, .weight_decay = 5e-5};
    struct lars_config lars = {.momentum = 0.9, .weight_decay = 5e-5, .eta = 0.001};
    int status = model_create(&c, &b->model, e);

    if (!status)
        status = sgd_create(b->model, &sgd, &b->sgd, e);
    if (!status)
        status = lars_create(b->model, &lars, &b->lars, e);
    if (!status)
        model_init(b->model, 1);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'},
        {0    }
    };
    struct bench b = {.threads = 1};
    double best[WORKS];
    struct error e;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (c == 't')
            b.threads = atoi(optarg);
        else
            return 2;
    if (b.threads < 1 || create(&b, &e)) {
        fprintf(stderr, "optimizer: %s\n", b.threads < 1 ? "--threads must be at least 1" : e.text);
        return 1;
    }
    measure(&b, best);
    printf("{\"copy_gb_per_sec\": %.2f, \"update_gb_per_sec\": %.2f, \"lars_gb_per_sec\": %.2f}\n",
           1e-9 * best[COPY], 1e-9 * best[SGD], 1e-9 * best[LARS]);
    lars_destroy(b.lars);
    sgd_destroy(b.sgd);
    model_destroy(b.model);
    return 0;
}
