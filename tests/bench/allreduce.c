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

#include "common/median.h"
#include "worker/comm/traincomm.h"

#define COUNT   25557032 /* parameters of ResNet-50 */
#define TENSORS 161
#define ROUNDS  5

enum { PIECES, THREAD, CALLS, WAYS };
static const char *const names[WAYS] = {"pieces", "thread", "calls"};

static double one_call(float *g)
{
    double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, g, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

static void keep_least(double *least, double seconds)
{
    double slowest_rank;
    MPI_Allreduce(&seconds, &slowest_rank, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (*least == 0 || slowest_rank < *least)
        *least = slowest_rank;
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

static void print_behind(struct traincomm_gradients *const *ways, double backward, int rank)
{
    double whole[WAYS][ROUNDS], unhidden[WAYS][ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        for (int w = 0; w < WAYS; w++)
            whole[w][i] = allreduce_step(ways[w], backward, &unhidden[w][i]);
    for (int w = 0; rank == 0 && w < WAYS; w++) {
        printf(", \"%s_step_ms\": %.2f, \"%s_unhidden_ms\": %.2f", names[w],
               median(whole[w], ROUNDS) * 1e3, names[w], median(unhidden[w], ROUNDS) * 1e3);
    }
}

int main(int argc, char **argv)
{
    struct traincomm *c;
    struct traincomm_gradients *ways[WAYS];
    double least[WAYS + 1] = {0};
    double backward = argc == 3 && !strcmp(argv[1], "--backward") ? atof(argv[2]) / 1e3 : 0;
    float *g = calloc(COUNT, sizeof *g);

    if (traincomm_init(&c) || !g)
        return 1;
    for (int w = 0; w < WAYS; w++) {
        struct traincomm_options options = {.way = w == PIECES   ? TRAINCOMM_WAY_PIECES
                                                   : w == THREAD ? TRAINCOMM_WAY_THREAD
                                                                 : TRAINCOMM_WAY_CALLS};
        if (traincomm_gradients_create(c, g, COUNT, &options, &ways[w]))
            return 1;
    }
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int w = 0; w < WAYS; w++)
            keep_least(&least[w], traincomm_gradients_wait(ways[w]));
        keep_least(&least[WAYS], one_call(g));
    }
    if (traincomm_rank(c) == 0)
        printf("{\"bytes\": %zu, \"ranks\": %d, \"pieces_ms\": %.2f, \"thread_ms\": %.2f, "
               "\"buckets_ms\": %.2f, \"one_call_ms\": %.2f",
               COUNT * sizeof *g, traincomm_size(c), least[PIECES] * 1e3, least[THREAD] * 1e3,
               least[CALLS] * 1e3, least[WAYS] * 1e3);
    if (backward > 0) {
        measure_loops();
        print_behind(ways, backward, traincomm_rank(c));
    }
    if (traincomm_rank(c) == 0)
        printf("}\n");
    for (int w = 0; w < WAYS; w++)
        traincomm_gradients_destroy(ways[w]);
    free(g);
    traincomm_finalize(c);
    return 0;
}
