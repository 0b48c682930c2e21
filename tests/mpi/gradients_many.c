/*
 * The gradients' sum of many ranks, on one machine and on several (parts of this one that count as
 * machines): right, the same bits on all ranks and again.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/tap.h"
#include "worker/comm/traincomm.h"

#define COUNT 300007 /* several pieces for many ranks, and no multiple of anything */

static float many_value(int rank, size_t i)
{
    return 1.0f / (float)(3 + (i * 7 + (size_t)rank * 13) % 1000);
}

/* In pairs: the ranks from first on. */
static float many_sum_of_ranks(int first, int n, size_t i)
{
    int half = 1;

    if (n == 1)
        return many_value(first, i);
    while (2 * half < n)
        half *= 2;
    return many_sum_of_ranks(first, half, i) + many_sum_of_ranks(first + half, n - half, i);
}

/* In pairs: machines of `each` ranks, the last of which may have fewer. */
static float many_sum_of(int first, int n, int each, size_t i)
{
    int world, half = 1;

    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (n == 1)
        return many_sum_of_ranks(first * each,
                                 each < world - first * each ? each : world - first * each, i);
    while (2 * half < n)
        half *= 2;
    return many_sum_of(first, half, each, i) + many_sum_of(first + half, n - half, each, i);
}

static int many_is_near(float x, float right, float part)
{
    return x > right * (1 - part) && x < right * (1 + part);
}

/* Each rank looks at some, and all at whether they have the same. part: of a sum it may be off; 0:
 * the bits are known. */
static int many_is_right(struct traincomm *c, const float *g, int each, float part)
{
    int world = traincomm_size(c), right = 1;
    float *first = malloc(COUNT * sizeof *first);

    for (size_t i = (size_t)traincomm_rank(c); i < COUNT; i += (size_t)world) {
        float sum = many_sum_of(0, (world + each - 1) / each, each, i);
        right &= part > 0 ? many_is_near(g[i], sum, part) : g[i] == sum;
    }
    memcpy(first, g, COUNT * sizeof *g);
    traincomm_broadcast(c, first, COUNT * sizeof *g, 0);
    right &= memcmp(first, g, COUNT * sizeof *g) == 0;
    free(first);
    return right;
}

static void many_check_dtype(struct traincomm *c, enum traincomm_dtype dtype, int each,
                             const char *what)
{
    struct traincomm_options options = {.bucket_bytes = 200000, .dtype = dtype};
    struct traincomm_gradients *a = NULL;
    float *g = malloc(COUNT * sizeof *g), *again = malloc(COUNT * sizeof *g);
    int right = traincomm_gradients_create(c, g, COUNT, &options, &a) == 0;

    for (int round = 0; right && round < 3; round++) { /* after backward, and during it */
        for (size_t i = 0; i < COUNT; i++)
            g[i] = many_value(traincomm_rank(c), i);
        for (size_t i = COUNT; i > 10000; i -= 10000)
            traincomm_gradients_ready(a, i);
        traincomm_gradients_wait(a);
        right = many_is_right(c, g, each, dtype == TRAINCOMM_BF16 ? 1.0f / 128 : 0) &&
                (round == 0 || memcmp(again, g, COUNT * sizeof *g) == 0);
        memcpy(again, g, COUNT * sizeof *g);
    }
    tap_check(right, what);
    traincomm_gradients_destroy(a);
    free(again);
    free(g);
}

/* Groups the ranks into machines of equal size. */
static void many_check_hosts(int each, const char *what, const char *what_bf16)
{
    struct traincomm *c;
    char ranks[16];

    snprintf(ranks, sizeof ranks, "%d", each);
    setenv("TRAINCOMM_HOST_RANKS", ranks, 1);
    if (traincomm_init_from(MPI_COMM_WORLD, &c))
        MPI_Abort(MPI_COMM_WORLD, 1);
    unsetenv("TRAINCOMM_HOST_RANKS");
    many_check_dtype(c, TRAINCOMM_FP32, each, what);
    many_check_dtype(c, TRAINCOMM_BF16, each, what_bf16);
    traincomm_finalize(c);
}

/* FNV-1a of the sums in both types, for comparisons between MPI libraries and layouts, and how many
 * rounds of messages each takes. */
static void many_print_hashes(void)
{
    struct traincomm *c;
    float *g = malloc(COUNT * sizeof *g);

    if (traincomm_init_from(MPI_COMM_WORLD, &c))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int dtype = TRAINCOMM_FP32; dtype <= TRAINCOMM_BF16; dtype++) {
        struct traincomm_options options = {.bucket_bytes = 200000,
                                            .dtype = (enum traincomm_dtype)dtype};
        struct traincomm_gradients *a;
        uint64_t hash = 14695981039346656037u;
        struct traincomm_stats stats;
        if (traincomm_gradients_create(c, g, COUNT, &options, &a))
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (size_t i = 0; i < COUNT; i++)
            g[i] = many_value(traincomm_rank(c), i);
        traincomm_gradients_wait(a);
        traincomm_gradients_stats(a, &stats);
        for (size_t i = 0; i < COUNT * sizeof *g; i++)
            hash = (hash ^ ((const unsigned char *)g)[i]) * 1099511628211u;
        if (traincomm_rank(c) == 0)
            printf("%s %016llx %d\n", dtype == TRAINCOMM_BF16 ? "bf16" : "fp32",
                   (unsigned long long)hash, stats.exchanges);
        traincomm_gradients_destroy(a);
    }
    traincomm_finalize(c);
    free(g);
}

/* Nothing but sums, for a test that counts what goes over the network: as many bytes. */
static void many_sum_alone(uint64_t bytes)
{
    struct traincomm_options options = {.no_overlap = true};
    struct traincomm_gradients *a = NULL;
    struct traincomm_stats stats = {0};
    struct traincomm *c;
    float *g = calloc(COUNT, sizeof *g);

    if (traincomm_init_from(MPI_COMM_WORLD, &c) ||
        traincomm_gradients_create(c, g, COUNT, &options, &a))
        MPI_Abort(MPI_COMM_WORLD, 1);
    while (stats.bytes < bytes) {
        traincomm_gradients_wait(a);
        traincomm_gradients_stats(a, &stats);
    }
    if (traincomm_rank(c) == 0)
        printf("%llu\n", (unsigned long long)stats.bytes);
    traincomm_gradients_destroy(a);
    traincomm_finalize(c);
    free(g);
}

/* Kills rank 1 after a number of calls in the second round. */
static void many_die(int calls)
{
    struct traincomm_options options = {.bucket_bytes = 200000};
    struct traincomm_gradients *a;
    struct traincomm *c;
    float *g = calloc(COUNT, sizeof *g);

    if (traincomm_init_from(MPI_COMM_WORLD, &c) ||
        traincomm_gradients_create(c, g, COUNT, &options, &a))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int round = 0; round < 4; round++) {
        for (size_t i = COUNT, call = 0; i > 10000; i -= 10000, call++) {
            if (round == 2 && call == (size_t)calls && traincomm_rank(c) == 1)
                raise(SIGKILL);
            traincomm_gradients_ready(a, i);
        }
        traincomm_gradients_wait(a);
    }
}

int main(int argc, char **argv)
{
    int threads, world;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads))
        return 1;
    if (argc == 2 && strcmp(argv[1], "hash") == 0)
        many_print_hashes();
    else if (argc == 2)
        many_sum_alone(strtoull(argv[1], NULL, 10));
    else if (argc == 3 && strcmp(argv[1], "die") == 0)
        many_die(atoi(argv[2]));
    if (argc > 1) {
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    many_check_hosts(world, "one machine: its memory, in pairs", "in bf16 too");
    many_check_hosts(3, "machines of three and a smaller one: two of each sum", "in bf16 too");
    many_check_hosts(2, "machines of two", "in bf16 too");
    many_check_hosts(1, "machines of one", "in bf16 too");
    int failed = tap_done();
    MPI_Finalize();
    return failed;
}
