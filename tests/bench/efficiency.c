/*
 * What training on all ranks of this machine loses against each rank alone. A core is not as fast
 * as it was a minute ago, so each round takes, one right after the other: a step of each rank while
 * the others sleep; a step of all at once with nothing in common; a step of all that sums the
 * gradients as train-worker does. Prints one JSON object with medians over the rounds: images/s of
 * all ranks in each of the three; what share of the second is lost if all wait for the slowest; and
 * what share of the third the sum takes, by the rank that came last to it. Images are random and
 * take no time.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/tune_all.h"
#include "common/clock.h"
#include "common/number.h"
#include "worker/comm/traincomm.h"
#include "worker/model/tuning.h"
#include "worker/model/forward_backward.h"
#include "worker/model/init.h"
#include "worker/optim/optimizer.h"

enum { MOST_ROUNDS = 100, CLASSES = 1000 };

struct options {
    const char *arch;
    int image_size, batch, rounds;
};

struct trainee { /* one rank's network */
    struct model *model;
    struct optimizer *optimizer;
    float *images;
    int32_t *labels;
    int batch;
};

/* Of each round. */
struct speeds { /* images/s of all ranks */
    double alone[MOST_ROUNDS], apart[MOST_ROUNDS], together[MOST_ROUNDS];
    double waits[MOST_ROUNDS], sum[MOST_ROUNDS]; /* shares: of `apart`, of a step together */
};

static int parse_efficiency(int argc, char **argv, struct options *o)
{
    if (argc != 5 || !arch_find(argv[1]))
        return -1;
    *o = (struct options){argv[1], atoi(argv[2]), atoi(argv[3]), atoi(argv[4])};
    bool fits = o->image_size > 0 && o->batch > 0 && o->rounds > 0 && o->rounds <= MOST_ROUNDS;
    return fits ? 0 : -1;
}

static int make_trainee(const struct options *o, struct trainee *t, struct error *e)
{
    struct model_tuning tuning = {0};
    struct model_config c = {.arch = arch_find(o->arch),
                             .stem = JOB_STEM_IMAGENET,
                             .classes = CLASSES,
                             .image_size = o->image_size,
                             .batch = o->batch,
                             .threads = 1,
                             .bn_momentum = 0.1,
                             .zero_init_residual = true};
    struct job_spec spec = {
        .optimizer = {.momentum = 0.9, .weight_decay = 5e-5}
    };
    size_t count = (size_t)o->batch * (size_t)o->image_size * (size_t)o->image_size * 3;

    tune_all(&c, CONV_WINOGRAD_4, &tuning);
    c.tuning = &tuning;
    t->batch = o->batch;
    t->images = malloc(count * sizeof *t->images);
    t->labels = calloc((size_t)o->batch, sizeof *t->labels);
    if (!t->images || !t->labels)
        return error_set(e, ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++)
        t->images[i] = (float)rand() / (float)RAND_MAX * 4 - 2;
    for (int i = 0; i < o->batch; i++)
        t->labels[i] = i % CLASSES;
    if (model_create(&c, &t->model, e))
        return -1;
    model_init(t->model, 1);
    return optimizer_create(t->model, &spec, 0.001, &t->optimizer, e);
}

static void destroy_trainee(struct trainee *t)
{
    optimizer_destroy(t->optimizer);
    model_destroy(t->model);
    free(t->images);
    free(t->labels);
}

static void send_ready(size_t offset, size_t count, void *gradients)
{
    (void)count;
    traincomm_gradients_ready(gradients, offset);
}

/* gradients NULL: of this rank alone. Returns the seconds that this rank spent on the sum. */
static double train_step(struct trainee *t, struct traincomm_gradients *gradients, int ranks)
{
    model_forward(t->model, t->images, t->labels, t->batch, NULL);
    model_backward(t->model, 1.0 / ranks, false, gradients ? send_ready : NULL, gradients);
    double sum = gradients ? traincomm_gradients_wait(gradients) : 0;
    optimizer_step(t->optimizer, 0.001);
    return sum;
}

/* A barrier that takes no core from the rank that is still at work. */
static void sleep_until_all_are_here(void)
{
    MPI_Request request;
    int here = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &here, MPI_STATUS_IGNORE), !here)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* *sum: as train_step() returns it. */
static double seconds_of_step(struct trainee *t, struct traincomm_gradients *gradients, int ranks,
                              double *sum)
{
    sleep_until_all_are_here();
    double start = clock_monotonic();
    *sum = train_step(t, gradients, ranks);
    return clock_monotonic() - start;
}

static double seconds_alone(struct trainee *t, int rank, int ranks)
{
    double seconds = 0, none;

    for (int i = 0; i < ranks; i++)
        if (i == rank)
            seconds = seconds_of_step(t, NULL, ranks, &none);
        else
            sleep_until_all_are_here();
    return seconds;
}

static void measure_round(struct trainee *t, struct traincomm_gradients *gradients,
                          struct traincomm *c, struct speeds *s, int round)
{
    int ranks = traincomm_size(c);
    double none, sum, images = ranks * t->batch;
    double alone = seconds_alone(t, traincomm_rank(c), ranks);
    double apart = seconds_of_step(t, NULL, ranks, &none);
    double together = seconds_of_step(t, gradients, ranks, &sum);
    double speeds[] = {t->batch / alone, t->batch / apart}, slowest[] = {apart, together};

    traincomm_reduce(c, TRAINCOMM_SUM, speeds, 2);
    traincomm_reduce(c, TRAINCOMM_MAX, slowest, 2);
    traincomm_reduce(c, TRAINCOMM_MIN, &sum, 1);
    s->alone[round] = speeds[0];
    s->apart[round] = speeds[1];
    s->together[round] = images / slowest[1];
    s->waits[round] = 1 - images / slowest[0] / speeds[1];
    s->sum[round] = sum / slowest[1];
}

static void print_speeds(struct speeds *s, size_t rounds, int ranks)
{
    printf("{\"ranks\": %d, \"alone_images_per_sec\": %.3f, \"apart_images_per_sec\": %.3f, "
           "\"images_per_sec\": %.3f, \"waits\": %.4f, \"sum\": %.4f}\n",
           ranks, number_median(s->alone, rounds), number_median(s->apart, rounds),
           number_median(s->together, rounds), number_median(s->waits, rounds),
           number_median(s->sum, rounds));
}

int main(int argc, char **argv)
{
    struct options o;
    static struct speeds speeds;
    struct trainee t = {0};
    struct traincomm *c;
    struct traincomm_gradients *gradients;
    struct error e;

    if (parse_efficiency(argc, argv, &o)) {
        fprintf(stderr, "usage: mpirun ... efficiency ARCH IMAGE_SIZE BATCH ROUNDS\n");
        return 2;
    }
    if (traincomm_init(&c))
        return 1;
    if (make_trainee(&o, &t, &e)) {
        fprintf(stderr, "%s\n", e.text);
        traincomm_abort(c, 1);
    }
    if (traincomm_gradients_create(c, model_grads(t.model), model_param_count(t.model), NULL,
                                   &gradients))
        traincomm_abort(c, 1);
    train_step(&t, NULL, traincomm_size(c)); /* warms up */
    for (int i = 0; i < o.rounds; i++)
        measure_round(&t, gradients, c, &speeds, i);
    if (traincomm_rank(c) == 0)
        print_speeds(&speeds, (size_t)o.rounds, traincomm_size(c));
    traincomm_gradients_destroy(gradients);
    destroy_trainee(&t);
    traincomm_finalize(c);
    return 0;
}
