/*
 * The optimisers' updates against mere copying: bytes a second of each with weight decay (LARS's
 * norms read weights and gradients once more), and of moving the same bytes as SGD does without any
 * arithmetic worth the name (reads weights, gradients and momentum, writes weights and momentum).
 * memcpy is slower than that: it reads before it writes what is not yet in the cache.
 *   optimizer [--threads T]      ResNet-50's parameters; prints one JSON object; run it pinned for
 * the figure of T cores.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/job/recipe/optimizers.h"
#include "worker/check/speed.h"
#include "worker/model/init.h"
#include "worker/team/parallel.h"
#include "worker/optim/optimizer.h"

enum { ROUNDS = 15, KINDS = JOB_OPTIMIZER_ADADELTA + 1 };

struct bench {
    struct model *model;
    struct optimizer *kinds[KINDS];
    int threads;
};

static void copy_part(int thread, int first, int end, void *context)
{
    struct bench *b = context;
    size_t all = model_param_count(b->model), part = all / 4 / (size_t)b->threads * 4;
    size_t at = (size_t)first * part, last = end == b->threads ? all : (size_t)end * part;

    (void)thread;
    speed_stream_part(model_params(b->model) + at,
                      optimizer_state(b->kinds[JOB_OPTIMIZER_SGD], 0) + at,
                      model_grads(b->model) + at, last - at);
}

static double rate(const struct bench *b, double passes, double start)
{
    double bytes = (double)model_param_count(b->model) * sizeof(float);
    return passes * bytes / (clock_monotonic() - start);
}

/* Weights and gradients are read, weights written, what is remembered read and written. */
static double passes_of(const struct bench *b, int kind)
{
    return 3 + 2 * (double)optimizer_states(b->kinds[kind]) + (kind == JOB_OPTIMIZER_LARS ? 2 : 0);
}

/* The best of interleaved rounds: neighbours only slow one down. */
static void optimizer_measure(struct bench *b, double *copy, double best[KINDS])
{
    *copy = 0;
    for (int i = 0; i < KINDS; i++)
        best[i] = 0;
    for (int r = 0; r < ROUNDS; r++) {
        double start = clock_monotonic();
        parallel_run(b->threads, b->threads, copy_part, b);
        *copy = fmax(*copy, rate(b, 5, start));
        for (int i = 0; i < KINDS; i++) {
            start = clock_monotonic();
            optimizer_step(b->kinds[i], 1e-6);
            best[i] = fmax(best[i], rate(b, passes_of(b, i), start));
        }
    }
}

static int optimizer_create_all(struct bench *b, struct error *e)
{
    struct model_config c = {.arch = arch_find("resnet50"),
                             .classes = 1000,
                             .image_size = 32,
                             .batch = 1,
                             .threads = b->threads,
                             .bn_momentum = 0.1};
    struct job_spec spec = {
        .optimizer = {.momentum = 0.9,
                      .weight_decay = 5e-5,
                      .lars_eta = 0.001,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .alpha = 0.99,
                      .rho = 0.9,
                      .eps = 1e-8}
    };
    int status = model_create(&c, &b->model, e);

    for (int i = 0; i < KINDS && !status; i++) {
        spec.optimizer.name = (enum job_optimizer)i;
        status = optimizer_create(b->model, &spec, 1e-6, &b->kinds[i], e);
    }
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
    double copy, best[KINDS];
    struct error e;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (c == 't')
            b.threads = atoi(optarg);
        else
            return 2;
    if (b.threads < 1 || optimizer_create_all(&b, &e)) {
        fprintf(stderr, "optimizer: %s\n", b.threads < 1 ? "--threads must be at least 1" : e.text);
        return 1;
    }
    optimizer_measure(&b, &copy, best);
    printf("{\"copy_gb_per_sec\": %.2f, \"update_gb_per_sec\": %.2f", 1e-9 * copy,
           1e-9 * best[JOB_OPTIMIZER_SGD]);
    for (size_t i = JOB_OPTIMIZER_SGDW; i < KINDS; i++)
        printf(", \"%s_gb_per_sec\": %.2f", optimizer_kind_at(i)->name, 1e-9 * best[i]);
    printf("}\n");
    for (int i = 0; i < KINDS; i++)
        optimizer_destroy(b.kinds[i]);
    model_destroy(b.model);
    return 0;
}
