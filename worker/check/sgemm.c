#include "worker/check/sgemm.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "worker/kernels/gemm.h"
#include "worker/team/parallel.h"

struct sgemm {
    int threads;
    size_t size, floats; /* of a matrix */
    float *matrices;     /* (threads, 3, size, size) */
    double *gflops;      /* (threads) of the last round */
};

static size_t sgemm_matrix_bytes(const struct sgemm *s)
{
    return 3 * s->floats * (size_t)s->threads * sizeof(float);
}

/* By the thread that will use it, so that it lies in that thread's memory. */
static void sgemm_fill(int thread, int first, int end, void *context)
{
    struct sgemm *s = context;
    float *m = s->matrices + 3 * s->floats * (size_t)first;

    (void)thread;
    (void)end;
    for (size_t i = 0; i < 3 * s->floats; i++)
        m[i] = (float)(i % 17) / 17;
}

static double sgemm_cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sgemm_multiply(int thread, int first, int end, void *context)
{
    struct sgemm *s = context;
    float *m = s->matrices + 3 * s->floats * (size_t)first;
    double start = sgemm_cpu_seconds(), n = (double)s->size;

    (void)thread;
    (void)end;
    gemm_nn(s->size, s->size, s->size, m, s->size, m + s->floats, s->size, m + 2 * s->floats,
            s->size, false);
    s->gflops[first] = 2e-9 * n * n * n / (sgemm_cpu_seconds() - start);
}

struct sgemm *sgemm_create(int size, int threads)
{
    struct sgemm *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->threads = threads;
    s->size = (size_t)size;
    s->floats = s->size * s->size;
    s->gflops = calloc((size_t)threads, sizeof *s->gflops);
    /* Mapped, not allocated: freeing large blocks would change how malloc serves the run that
     * follows. */
    s->matrices = mmap(NULL, sgemm_matrix_bytes(s), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->matrices == MAP_FAILED || !s->gflops) {
        sgemm_destroy(s);
        return NULL;
    }
    gemm_single_threaded();
    parallel_run(threads, threads, sgemm_fill, s);
    return s;
}

double sgemm_round(struct sgemm *s)
{
    double all = 0;

    parallel_run(s->threads, s->threads, sgemm_multiply, s);
    for (int t = 0; t < s->threads; t++)
        all += s->gflops[t];
    return all;
}

void sgemm_destroy(struct sgemm *s)
{
    if (!s)
        return;
    if (s->matrices != MAP_FAILED)
        munmap(s->matrices, sgemm_matrix_bytes(s));
    free(s->gflops);
    free(s);
}
