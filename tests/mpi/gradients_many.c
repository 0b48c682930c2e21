/*
 * The gradients' sum of many ranks, on one machine and on several (parts of this one that count as
 * machines): right, the same bits on all ranks and again.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/tap.h"
#include "worker/comm/traincomm.h"

#define COUNT 300007 /* several pieces for many ranks, and no multiple of anything */

static float many_value(int rank, size_t i)
{
    return 1.0f / (float)(3 + (i * 7 + (size_t)rank * 13) % 1000);
}

/* In pairs, as shared memory adds. */
static float many_sum_of(int first, int n, size_t i)
{
    int half = 1;

    if (n == 1)
        return many_value(first, i);
    while (2 * half < n)
        half *= 2;
    return many_sum_of(first, half, i) + many_sum_of(first + half, n - half, i);
}

static int many_is_near(float x, float right, float part)
{
    return x > right * (1 - part) && x < right * (1 + part);
}

/* Each rank looks at some, and all at whether they have the same. */
static int many_is_right(struct traincomm *c, const float *g, float part)
{
    int world = traincomm_size(c), right = 1;
    float *first = malloc(COUNT * sizeof *first);

    for (size_t i = (size_t)traincomm_rank(c); i < COUNT; i += (size_t)world) {
        float sum = many_sum_of(0, world, i);
        right &= part > 0 ? many_is_near(g[i], sum, part) : g[i] == sum;
    }
    memcpy(first, g, COUNT * sizeof *g);
    traincomm_broadcast(c, first, COUNT * sizeof *g, 0);
    right &= memcmp(first, g, COUNT * sizeof *g) == 0;
    free(first);
    return right;
}

/* part: of a sum it may be off; 0: the bits are known. */
static void many_check_way(struct traincomm *c, enum traincomm_dtype dtype,
                           enum traincomm_way expected, float part, const char *what)
{
    struct traincomm_options options = {.bucket_bytes = 200000, .dtype = dtype};
    struct traincomm_gradients *a = NULL;
    struct traincomm_stats stats = {0};
    float *g = malloc(COUNT * sizeof *g), *again = malloc(COUNT * sizeof *g);
    int right = traincomm_gradients_create(c, g, COUNT, &options, &a) == 0;

    for (int round = 0; right && round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++)
            g[i] = many_value(traincomm_rank(c), i);
        for (size_t i = COUNT; i > 10000; i -= 10000)
            traincomm_gradients_ready(a, i);
        traincomm_gradients_wait(a);
        right =
            many_is_right(c, g, part) && (round == 0 || memcmp(again, g, COUNT * sizeof *g) == 0);
        memcpy(again, g, COUNT * sizeof *g);
    }
    if (right)
        traincomm_gradients_stats(a, &stats);
    tap_check(right && stats.way == expected && stats.buckets > 2 * 2, what);
    traincomm_gradients_destroy(a);
    free(again);
    free(g);
}

/* The same ranks as machines of so many each. */
static void many_check_hosts(const char *ranks, enum traincomm_way way, const char *what,
                             const char *what_bf16)
{
    struct traincomm *c;
    int world;

    MPI_Comm_size(MPI_COMM_WORLD, &world);
    setenv("TRAINCOMM_HOST_RANKS", ranks, 1);
    if (traincomm_init_from(MPI_COMM_WORLD, &c))
        MPI_Abort(MPI_COMM_WORLD, 1);
    unsetenv("TRAINCOMM_HOST_RANKS");
    many_check_way(c, TRAINCOMM_FP32, way, way == TRAINCOMM_WAY_SHARED ? 0 : 1e-5f, what);
    many_check_way(c, TRAINCOMM_BF16, way, 1.0f / 128, what_bf16);
    traincomm_finalize(c);
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

int main(int argc, char **argv)
{
    int threads;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads))
        return 1;
    if (argc == 2) {
        many_sum_alone(strtoull(argv[1], NULL, 10));
        MPI_Finalize();
        return 0;
    }
    many_check_hosts("0", TRAINCOMM_WAY_SHARED, "one machine: its memory, in pairs", "in bf16 too");
    many_check_hosts("3", TRAINCOMM_WAY_LEADERS, "machines of three and a smaller one: leaders",
                     "in bf16 too");
    many_check_hosts("1", TRAINCOMM_WAY_CALLS, "machines of one: no leaders", "in bf16 too");
    int failed = tap_done();
    MPI_Finalize();
    return failed;
}
