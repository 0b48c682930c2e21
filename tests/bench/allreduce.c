/*
 * How long ResNet-50's gradients take between the ranks started: libtraincomm without anything to
 * hide behind, in fp32 and bf16, MPI_Allreduce in one call, and what of it stays unhidden behind a
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

#define COUNT        25557032 /* parameters of ResNet-50 */
#define TENSORS      161
#define ROUNDS       5
#define TRIAL_ROUNDS 10

static const char *const names[] = {[TRAINCOMM_FP32] = "sum", [TRAINCOMM_BF16] = "sum_bf16"};
enum { KINDS = sizeof names / sizeof names[0] };

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

/* sum NULL: MPI_Allreduce in one call. */
static void measure(struct traincomm_gradients *sum, float *g, struct least *least)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), cpu = cpu_seconds();
    if (sum)
        traincomm_gradients_wait(sum);
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
    double whole[KINDS][ROUNDS], unhidden[KINDS][ROUNDS];

    for (int i = 0; i < TRIAL_ROUNDS; i++) /* which of them decide what drives the buckets */
        for (int k = 0; k < KINDS; k++)
            allreduce_step(sums[k], backward, &unhidden[k][0]);
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < KINDS; k++)
            whole[k][i] = allreduce_step(sums[k], backward, &unhidden[k][i]);
    for (int k = 0; rank == 0 && k < KINDS; k++)
        printf(", \"%s_step_ms\": %.2f, \"%s_unhidden_ms\": %.2f", names[k],
               median(whole[k], ROUNDS) * 1e3, names[k], median(unhidden[k], ROUNDS) * 1e3);
}

int main(int argc, char **argv)
{
    struct traincomm *c;
    struct traincomm_gradients *sums[KINDS] = {NULL};
    struct least least[KINDS + 1] = {0};
    double backward = argc == 3 && !strcmp(argv[1], "--backward") ? atof(argv[2]) / 1e3 : 0;
    float *g = calloc(COUNT, sizeof *g);

    if (traincomm_init(&c) || !g)
        return 1;
    for (int k = 0; k < KINDS; k++) {
        struct traincomm_options options = {.dtype = (enum traincomm_dtype)k};
        if (traincomm_gradients_create(c, g, COUNT, &options, &sums[k]))
            return 1;
    }
    if (backward > 0)
        measure_loops();
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k <= KINDS; k++)
            measure(k < KINDS ? sums[k] : NULL, g, &least[k]);
    if (traincomm_rank(c) == 0)
        printf("{\"bytes\": %zu, \"ranks\": %d", COUNT * sizeof *g, traincomm_size(c));
    for (int k = 0; traincomm_rank(c) == 0 && k <= KINDS; k++) {
        const char *name = k < KINDS ? names[k] : "one_call";
        printf(", \"%s_ms\": %.2f, \"%s_cpu_ms\": %.2f", name, least[k].seconds * 1e3, name,
               least[k].cpu_seconds / traincomm_size(c) * 1e3);
    }
    if (backward > 0)
        print_behind(sums, backward, traincomm_rank(c));
    if (traincomm_rank(c) == 0)
        printf("}\n");
    for (int k = 0; k < KINDS; k++)
        traincomm_gradients_destroy(sums[k]);
    free(g);
    traincomm_finalize(c);
    return 0;
}
