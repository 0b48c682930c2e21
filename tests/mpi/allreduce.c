/* The gradient all-reduce: the sum, whatever the buckets, the ranges backward reports, and the way
 * taken. */
#include <stdlib.h>

#include "tests/mpi/tap.h"
#include "worker/comm/allreduce.h"

#define COUNT 1200007 /* more than two pieces, and no multiple of anything */

static float value(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 13) % 1000) / 8; /* sums are exact in float */
}

static void fill(float *g, int rank)
{
    for (size_t i = 0; i < COUNT; i++)
        g[i] = value(rank, i);
}

static int is_sum(const float *g, int world)
{
    for (size_t i = 0; i < COUNT; i++) {
        float sum = 0;
        for (int r = 0; r < world; r++)
            sum += value(r, i);
        if (g[i] != sum)
            return 0;
    }
    return 1;
}

/* Ranges of uneven sizes, from the end to the beginning, as backward reports them; another cut on
 * each rank. */
static void report_ranges(struct allreduce *a, int rank)
{
    size_t from = COUNT, n = (size_t)100 + (size_t)rank * 17;
    while (from > 0) {
        n = n * 2 < from ? n * 2 : from;
        from -= n;
        allreduce_ready(from, n, a);
    }
}

static void check(int rank, int world, int64_t fusion_bytes, bool overlap, bool one_machine,
                  const char *what)
{
    struct error e;
    struct allreduce *a = NULL;
    float *g = malloc(COUNT * sizeof *g);
    int right = allreduce_create(MPI_COMM_WORLD, g, COUNT, fusion_bytes, overlap, &a, &e) == 0;

    if (!one_machine)
        allreduce_assume_network(a);
    for (int round = 0; right && round < 3; round++) {
        fill(g, rank);
        report_ranges(a, rank);
        allreduce_finish(a);
        right = is_sum(g, world);
    }
    tap_check(right, what);
    allreduce_destroy(a);
    free(g);
}

int main(int argc, char **argv)
{
    int rank, world;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    check(rank, world, 32 << 20, true, true, "one machine: pieces");
    check(rank, world, 1 << 20, true, false, "network: buckets of 1 MiB behind backward");
    check(rank, world, 32 << 20, true, false, "network: one bucket larger than the buffer");
    check(rank, world, 100000, false, false, "network: odd buckets after backward");
    int failed = tap_done();
    MPI_Finalize();
    return failed;
}
