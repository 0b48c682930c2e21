#include "worker/peak.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/parallel.h"

#define SIZE   1536 /* rows and columns: 9 MiB a matrix, as fast as larger ones */
#define FLOATS ((size_t)SIZE * SIZE)
#define ROUNDS 4

struct bench {
    float *matrices; /* (threads, 3, SIZE, SIZE) */
    double *gflops;  /* (threads) of the last round */
};

static void multiply(int thread, int first, int end, void *context)
{
    struct bench *b = context;
    float *m = b->matrices + 3 * FLOATS * (size_t)first;
    double start = clock_monotonic();

    (void)thread;
    (void)end;
    gemm_nn(SIZE, SIZE, SIZE, m, SIZE, m + FLOATS, SIZE, m + 2 * FLOATS, SIZE, false);
    b->gflops[first] = 2e-9 * SIZE * SIZE * SIZE / (clock_monotonic() - start);
}

/* One product on every thread of every rank, started together. */
static double one_round(struct traincomm *comm, struct bench *b, int threads)
{
    double all = 0;

    traincomm_barrier(comm);
    parallel_run(threads, threads, multiply, b);
    for (int t = 0; t < threads; t++)
        all += b->gflops[t];
    traincomm_reduce(comm, TRAINCOMM_SUM, &all, 1);
    return all;
}

double peak_sgemm_gflops(struct traincomm *comm, int threads)
{
    size_t count = 3 * FLOATS * (size_t)threads;
    /* Mapped, not allocated: freeing large blocks would change how malloc serves the run that
     * follows. */
    void *memory = mmap(NULL, count * sizeof(float), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct bench b = {memory, calloc((size_t)threads, sizeof(double))};
    double ready = memory != MAP_FAILED && b.gflops;
    double best = 0;

    traincomm_reduce(comm, TRAINCOMM_MIN, &ready, 1);
    for (size_t i = 0; ready > 0 && i < count; i++)
        b.matrices[i] = (float)(i % 17) / 17;
    gemm_single_threaded();
    for (int i = 0; ready > 0 && i < ROUNDS; i++) {
        double now = one_round(comm, &b, threads);
        if (now > best)
            best = now;
    }
    free(b.gflops);
    if (memory != MAP_FAILED)
        munmap(memory, count * sizeof(float));
    return best;
}

int64_t peak_memory_bytes(struct traincomm *comm)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    double bytes = (double)usage.ru_maxrss * 1024; /* Linux counts it in KiB */
    traincomm_reduce(comm, TRAINCOMM_MAX, &bytes, 1);
    return (int64_t)bytes;
}
