/*
 * How long ResNet-50's gradients take between the ranks started: each way of libtraincomm without
 * anything to hide behind, MPI_Allreduce in one call, and what of it stays unhidden behind a
 * backward pass of so many milliseconds (--backward MS; gradients get ready at the rate of bytes,
 * which is worse than a network's: its last layers have most of them). Minima of interleaved
 * rounds (medians behind backward), as one JSON object.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/median.h"
#include "worker/comm/traincomm.h"

#define COUNT   25557032 /* parameters of ResNet-50 */
#define TENSORS 161
#define ROUNDS  5

static const struct {
    const char *name;
    enum traincomm_way way;
} ways[] = {
    {"pieces",  TRAINCOMM_WAY_PIECES },
    {"buckets", TRAINCOMM_WAY_CALLS  },
    {"leaders", TRAINCOMM_WAY_LEADERS},
    {"shared",  TRAINCOMM_WAY_SHARED }  /* of one machine alone */
};
enum { WAYS = sizeof ways / sizeof ways[0] };

struct least {
    double seconds, cpu_seconds; /* of the slowest rank, of all ranks */
};

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep_least(struct least *least, double seconds, double cpu)
{
    double slowest_rank, all;
    MPI_Allreduce(&seconds, &slowest_rank, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (least->seconds == 0 || slowest_rank < least->seconds)
        least->seconds = slowest_rank;
    if (least->cpu_seconds == 0 || all < least->cpu_seconds)
        least->cpu_seconds = all;
}

/* way NULL: MPI_Allreduce in one call. */
static void measure(struct traincomm_gradients *way, float *g, struct least *least)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), cpu = cpu_seconds();
    if (way)
        traincomm_gradients_wait(way);
    else
        MPI_Allreduce(MPI_IN_PLACE, g, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double end = cpu_seconds();
    keep_least(least, MPI_Wtime() - start, end - cpu);
}

/* So much arithmetic as takes one thread the seconds, if nobody takes the core from it. */
static double loops_per_second;
static volatile double sink;

static void compute(double seconds)
{
    double x = sink; /* unknown to the compiler */
    for (long i = 0; i < (long)(seconds * loops_per_second); i++)
        x = x * 0.999 + 0.001;
    sink = x;
}

static void measure_loops(void)
{
    loops_per_second = 1e8;
    double start = MPI_Wtime();
    compute(0.5);
    loops_per_second *= 0.5 / (MPI_Wtime() - start);
}

/* Seconds of a backward of such length and the all-reduce behind it; *unhidden: after it. */
static double allreduce_step(struct traincomm_gradients *g, double backward, double *unhidden)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = TENSORS; i-- > 0;) {
        compute(backward / TENSORS);
        traincomm_gradients_ready(g, (size_t)COUNT / TENSORS * (size_t)i);
    }
    *unhidden = traincomm_gradients_wait(g);
    return MPI_Wtime() - start;
}

static void print_behind(struct traincomm_gradients *const *sums, double backward, int rank)
{
    double whole[WAYS][ROUNDS], unhidden[WAYS][ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        for (int w = 0; w < WAYS; w++)
            if (sums[w])
                whole[w][i] = allreduce_step(sums[w], backward, &unhidden[w][i]);
    for (int w = 0; rank == 0 && w < WAYS; w++)
        if (sums[w])
            printf(", \"%s_step_ms\": %.2f, \"%s_unhidden_ms\": %.2f", ways[w].name,
                   median(whole[w], ROUNDS) * 1e3, ways[w].name, median(unhidden[w], ROUNDS) * 1e3);
}

int main(int argc, char **argv)
{
    struct traincomm *c;
    struct traincomm_gradients *sums[WAYS] = {NULL};
    struct least least[WAYS + 1] = {0};
    double backward = argc == 3 && !strcmp(argv[1], "--backward") ? atof(argv[2]) / 1e3 : 0;
    float *g = calloc(COUNT, sizeof *g);

    if (traincomm_init(&c) || !g)
        return 1;
    for (int w = 0; w < WAYS; w++) {
        struct traincomm_options options = {.way = ways[w].way};
        if (traincomm_gradients_create(c, g, COUNT, &options, &sums[w]) &&
            ways[w].way != TRAINCOMM_WAY_SHARED)
            return 1;
    }
    for (int i = 0; i < ROUNDS; i++)
        for (int w = 0; w <= WAYS; w++)
            if (w == WAYS || sums[w])
                measure(w < WAYS ? sums[w] : NULL, g, &least[w]);
    if (traincomm_rank(c) == 0)
        printf("{\"bytes\": %zu, \"ranks\": %d", COUNT * sizeof *g, traincomm_size(c));
    for (int w = 0; traincomm_rank(c) == 0 && w <= WAYS; w++) {
        const char *name = w < WAYS ? ways[w].name : "one_call";
        if (least[w].seconds > 0)
            printf(", \"%s_ms\": %.2f, \"%s_cpu_ms\": %.2f", name, least[w].seconds * 1e3, name,
                   least[w].cpu_seconds / traincomm_size(c) * 1e3);
    }
    if (backward > 0) {
        measure_loops();
        print_behind(sums, backward, traincomm_rank(c));
    }
    if (traincomm_rank(c) == 0)
        printf("}\n");
    for (int w = 0; w < WAYS; w++)
        traincomm_gradients_destroy(sums[w]);
    free(g);
    traincomm_finalize(c);
    return 0;
}
