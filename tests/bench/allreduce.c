/*
 * How long ResNet-50's gradients take between the ranks started: libtraincomm without anything to
 * hide behind, in fp32 and bf16, MPI_Allreduce in one call, and what of it stays unhidden behind a
 * backward pass of so many milliseconds (--backward MS; gradients get ready at the rate of bytes,
 * which is worse than a network's: its last layers have most of them). Minima of interleaved
 * rounds (medians behind backward), as one JSON object.
 *
 *   allreduce [--backward MS [--sleep]] [--rounds N] [--fp32]
 *
 * --sleep: backward sleeps instead of computing, where ranks share cores that each would have to
 * itself; the processor's time of a call makes it longer all the same. --fp32: no bf16.
 */
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/number.h"
#include "worker/comm/traincomm.h"

#define COUNT        25557032 /* parameters of ResNet-50 */
#define TENSORS      161
#define ROUNDS       5
#define ROUNDS_MAX   100
#define TRIAL_ROUNDS 7 /* which decide what drives the buckets */
#define HOPS         21
#define NODE_ROUNDS  3
#define FLOOD        8 /* messages to each other machine */
#define FLOOD_FLOATS ((size_t)1 << 18)
#define FLOOD_MAX    48 /* in all */

static const char *const names[] = {[TRAINCOMM_FP32] = "sum", [TRAINCOMM_BF16] = "sum_bf16"};
enum { KINDS = sizeof names / sizeof names[0] };

static struct {
    double backward; /* seconds; 0: none */
    bool sleeps;
    int rounds, kinds;
} asked = {.rounds = ROUNDS, .kinds = KINDS};

struct least {
    double seconds, cpu_seconds; /* of the slowest rank, of all ranks */
};

static double allreduce_seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double allreduce_cpu_seconds(void)
{
    return allreduce_seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void allreduce_sleep_until(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
        ;
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
    double start = MPI_Wtime(), cpu = allreduce_cpu_seconds();
    if (sum)
        traincomm_gradients_wait(sum);
    else
        MPI_Allreduce(MPI_IN_PLACE, g, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double end = allreduce_cpu_seconds();
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

/* Seconds of a backward and the all-reduce behind it, of the slowest rank; *unhidden: of this rank,
 * after it. */
static double allreduce_step(struct traincomm_gradients *g, double *unhidden)
{
    double part = asked.backward / TENSORS, seconds, slowest_rank;

    MPI_Barrier(MPI_COMM_WORLD);
    double start = allreduce_seconds_of(CLOCK_MONOTONIC), due = start;
    for (int i = TENSORS; i-- > 0;) {
        due += part;
        if (asked.sleeps)
            allreduce_sleep_until(due);
        else
            compute(part);
        double cpu = allreduce_seconds_of(CLOCK_THREAD_CPUTIME_ID);
        traincomm_gradients_ready(g, (size_t)COUNT / TENSORS * (size_t)i);
        due += allreduce_seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    }
    *unhidden = traincomm_gradients_wait(g);
    seconds = allreduce_seconds_of(CLOCK_MONOTONIC) - start;
    MPI_Allreduce(&seconds, &slowest_rank, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest_rank;
}

static void print_behind(struct traincomm_gradients *const *sums, int rank)
{
    double whole[KINDS][ROUNDS_MAX], unhidden[KINDS][ROUNDS_MAX];
    size_t rounds = (size_t)asked.rounds;
    char words[512];

    for (int i = 0; i < TRIAL_ROUNDS; i++)
        for (int k = 0; k < asked.kinds; k++)
            allreduce_step(sums[k], &unhidden[k][0]);
    for (int i = 0; i < asked.rounds; i++)
        for (int k = 0; k < asked.kinds; k++)
            whole[k][i] = allreduce_step(sums[k], &unhidden[k][i]);
    for (int k = 0; rank == 0 && k < asked.kinds; k++) {
        traincomm_gradients_describe(sums[k], words, sizeof words);
        printf(", \"%s_step_ms\": %.2f, \"%s_unhidden_ms\": %.2f, \"%s_words\": \"%s\"", names[k],
               number_median(whole[k], rounds) * 1e3, names[k],
               number_median(unhidden[k], rounds) * 1e3, names[k], words);
    }
}

/* The median time of a small message from the first rank to the last. */
static double allreduce_hop_seconds(int rank, int size)
{
    double seconds[HOPS];

    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < HOPS && size > 1; i++) {
        double start = MPI_Wtime();
        if (rank == 0)
            MPI_Send(NULL, 0, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD);
        if (rank == 0 || rank == size - 1)
            MPI_Recv(NULL, 0, MPI_BYTE, size - 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == size - 1)
            MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        seconds[i] = (MPI_Wtime() - start) / 2;
    }
    return size > 1 ? number_median(seconds, HOPS) : 0;
}

/* Bytes a second that a machine sends, and receives, while all ranks send to those of the other
 * machines, at once and waiting for nothing; as many ranks on each machine, side by side. 0: there
 * is one machine. */
static double allreduce_link_rate(const struct traincomm *c, float *g)
{
    int each = traincomm_host_size(c), peers = traincomm_size(c) / each - 1, n = 0;
    int flood = peers > 0 && FLOOD_MAX / peers < FLOOD ? FLOOD_MAX / peers : FLOOD;
    MPI_Request requests[2 * FLOOD_MAX];
    double seconds, slowest_rank;

    if (peers < 1 || flood < 1)
        return 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < flood; i++)
        for (int j = 1; j <= peers; j++, n += 2) {
            int size = traincomm_size(c), rank = traincomm_rank(c);
            float *out = g + FLOOD_FLOATS * (size_t)(n / 2), *in = g + COUNT / 2 + (out - g);
            MPI_Irecv(in, (int)FLOOD_FLOATS, MPI_FLOAT, (rank + size - each * j) % size, 0,
                      MPI_COMM_WORLD, &requests[n]);
            MPI_Isend(out, (int)FLOOD_FLOATS, MPI_FLOAT, (rank + each * j) % size, 0,
                      MPI_COMM_WORLD, &requests[n + 1]);
        }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    seconds = MPI_Wtime() - start;
    MPI_Allreduce(&seconds, &slowest_rank, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (double)(each * flood * peers) * FLOOD_FLOATS * sizeof *g / slowest_rank;
}

/* The median time in which the ranks of each machine, on all at once, sum in its memory. */
static double allreduce_node_seconds(const struct traincomm *c, float *g)
{
    struct traincomm_gradients *sum;
    struct traincomm *node;
    MPI_Comm comm;
    double seconds[NODE_ROUNDS], mine, slowest_rank;

    MPI_Comm_split(MPI_COMM_WORLD, traincomm_rank(c) / traincomm_host_size(c), 0, &comm);
    if (traincomm_init_from(comm, &node) || traincomm_gradients_create(node, g, COUNT, NULL, &sum))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < NODE_ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        seconds[i] = traincomm_gradients_wait(sum);
    }
    traincomm_gradients_destroy(sum);
    traincomm_finalize(node);
    MPI_Comm_free(&comm);
    mine = number_median(seconds, NODE_ROUNDS);
    MPI_Allreduce(&mine, &slowest_rank, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest_rank;
}

static bool allreduce_understood(int argc, char **argv)
{
    static const struct option options[] = {
        {"backward", required_argument, NULL, 'b'},
        {"sleep",    no_argument,       NULL, 's'},
        {"rounds",   required_argument, NULL, 'r'},
        {"fp32",     no_argument,       NULL, 'f'},
        {NULL,       0,                 NULL, 0  }
    };

    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'b')
            asked.backward = atof(optarg) / 1e3;
        else if (o == 's')
            asked.sleeps = true;
        else if (o == 'r')
            asked.rounds = atoi(optarg);
        else if (o == 'f')
            asked.kinds = TRAINCOMM_FP32 + 1;
        else
            return false;
    }
    return optind == argc && asked.rounds > 0 && asked.rounds <= ROUNDS_MAX;
}

static void allreduce_print_least(const struct least *least, const char *name, int ranks)
{
    printf(", \"%s_ms\": %.2f, \"%s_cpu_ms\": %.2f", name, least->seconds * 1e3, name,
           least->cpu_seconds / ranks * 1e3);
}

int main(int argc, char **argv)
{
    struct traincomm *c;
    struct traincomm_gradients *sums[KINDS] = {NULL};
    struct least least[KINDS] = {0}, one_call = {0};
    float *g = calloc(COUNT, sizeof *g);

    if (!allreduce_understood(argc, argv)) {
        fprintf(stderr, "usage: allreduce [--backward MS [--sleep]] [--rounds 1..%d] [--fp32]\n",
                ROUNDS_MAX);
        return 2;
    }
    if (traincomm_init(&c) || !g)
        return 1;
    int rank = traincomm_rank(c), size = traincomm_size(c);
    for (int k = 0; k < asked.kinds; k++) {
        struct traincomm_options options = {.dtype = (enum traincomm_dtype)k};
        if (traincomm_gradients_create(c, g, COUNT, &options, &sums[k]))
            return 1;
    }
    double hop = allreduce_hop_seconds(rank, size), link = allreduce_link_rate(c, g),
           node = allreduce_node_seconds(c, g);
    if (asked.backward > 0 && !asked.sleeps)
        measure_loops();
    for (int i = 0; i < asked.rounds && asked.backward <= 0; i++) {
        for (int k = 0; k < asked.kinds; k++)
            measure(sums[k], g, &least[k]);
        measure(NULL, g, &one_call);
    }
    if (rank == 0)
        printf("{\"bytes\": %zu, \"ranks\": %d, \"hop_us\": %.1f, \"link_mbit\": %.2f, "
               "\"node_ms\": %.2f",
               COUNT * sizeof *g, size, hop * 1e6, link * 8e-6, node * 1e3);
    for (int k = 0; rank == 0 && asked.backward <= 0 && k < asked.kinds; k++)
        allreduce_print_least(&least[k], names[k], size);
    if (rank == 0 && asked.backward <= 0)
        allreduce_print_least(&one_call, "one_call", size);
    if (asked.backward > 0)
        print_behind(sums, rank);
    if (rank == 0)
        printf("}\n");
    for (int k = 0; k < asked.kinds; k++)
        traincomm_gradients_destroy(sums[k]);
    free(g);
    traincomm_finalize(c);
    return 0;
}
