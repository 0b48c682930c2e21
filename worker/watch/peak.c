#include "worker/watch/peak.h"

#include <sys/resource.h>

#include "worker/check/sgemm.h"

#define SIZE   1024 /* 4 MiB a matrix: within 2 % of larger ones, in a third of the time */
#define ROUNDS 6    /* others may use the cores in some of them */

double peak_sgemm_gflops(struct traincomm *comm, int threads)
{
    struct sgemm *s = sgemm_create(SIZE, threads);
    double ready = s != NULL, best = 0;

    traincomm_reduce(comm, TRAINCOMM_MIN, &ready, 1);
    for (int i = 0; ready > 0 && i < ROUNDS; i++) {
        traincomm_barrier(comm);
        double all = sgemm_round(s);
        traincomm_reduce(comm, TRAINCOMM_SUM, &all, 1);
        if (all > best)
            best = all;
    }
    sgemm_destroy(s);
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
