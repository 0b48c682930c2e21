#include "worker/comm/sums.h"

#include <stdbool.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#define BLOCK_FLOATS ((size_t)512)
#define LINE_FLOATS  ((size_t)16)
#define THREAD_FLOATS                                                                              \
    ((size_t)1 << 15) /* minimum per thread: less does not pay for waking a thread up */

struct sums_task {
    const float *const *fp32;
    const sums_bf16_t *const *bf16;
    int ranks;
    float *to_fp32;
    sums_bf16_t *to_bf16;
};
typedef void sums_body(const struct sums_task *task, size_t first, size_t end);

static _Thread_local int sums_threads = 1;

void sums_use_threads(int threads)
{
    sums_threads = threads;
}

/* The threads inherit the caller's treatment of denormals. */
static void sums_share(const struct sums_task *task, size_t n, sums_body *body)
{
#ifdef _OPENMP
    int threads = sums_threads, most = (int)(n / THREAD_FLOATS);
    if (most > 1 && threads > 1 && !omp_in_parallel()) {
#ifdef __SSE__
        unsigned state = _mm_getcsr();
#endif
#pragma omp parallel num_threads(most < threads ? most : threads)
        {
#ifdef __SSE__
            _mm_setcsr(state);
#endif
            size_t parts = (size_t)omp_get_num_threads(), part = (size_t)omp_get_thread_num();
            size_t lines = n / LINE_FLOATS, first = lines * part / parts * LINE_FLOATS;
            size_t end = lines * (part + 1) / parts * LINE_FLOATS;
            body(task, first, part + 1 == parts ? n : end);
        }
        return;
    }
#endif
    body(task, 0, n);
}

static void sums_pairs(const float *const *from, int ranks, size_t at, size_t n, float *sum)
{
    float other[BLOCK_FLOATS];
    const float *a = from[0] + at, *b = other;
    int half = 1;

    if (ranks == 1) {
        memcpy(sum, a, n * sizeof *sum);
        return;
    }
    while (2 * half < ranks)
        half *= 2;
    if (half > 1) {
        sums_pairs(from, half, at, n, sum);
        a = sum;
    }
    if (ranks - half > 1)
        sums_pairs(from + half, ranks - half, at, n, other);
    else
        b = from[half] + at;
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
}

static void sums_of_fp32(const struct sums_task *task, size_t first, size_t end)
{
    float sum[BLOCK_FLOATS];

    for (size_t at = first, n; at < end; at += n) {
        float *to = task->to_fp32 + at;
        n = end - at < BLOCK_FLOATS ? end - at : BLOCK_FLOATS;
        sums_pairs(task->fp32, task->ranks, at, n, task->ranks == 2 ? to : sum);
        if (task->ranks != 2) /* `to` may be an operand, which must not change before it is read */
            memcpy(to, sum, n * sizeof *sum);
    }
}

void sums_fp32(const float *const *from, int ranks, size_t n, float *to)
{
    sums_share(&(struct sums_task){.fp32 = from, .ranks = ranks, .to_fp32 = to}, n, sums_of_fp32);
}

static void sums_copied(const struct sums_task *task, size_t first, size_t end)
{
    memcpy(task->to_fp32 + first, task->fp32[0] + first, (end - first) * sizeof(float));
}

void sums_copy(const float *from, float *to, size_t n)
{
    sums_share(&(struct sums_task){.fp32 = &from, .to_fp32 = to}, n, sums_copied);
}

static sums_bf16_t sums_rounded(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    uint32_t nearest = bits + 0x7fff + (bits >> 16 & 1);
    bits = (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : nearest;
    return (sums_bf16_t)(bits >> 16);
}

static float sums_widened(sums_bf16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float wide;

    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

static void sums_of_bf16(const struct sums_task *task, size_t first, size_t end)
{
    float sum[BLOCK_FLOATS];

    for (size_t at = first, n; at < end; at += n) {
        n = end - at < BLOCK_FLOATS ? end - at : BLOCK_FLOATS;
        memset(sum, 0, n * sizeof *sum);
        for (int r = 0; r < task->ranks; r++)
            for (size_t i = 0; i < n; i++)
                sum[i] += sums_widened(task->bf16[r][at + i]);
        for (size_t i = 0; i < n; i++)
            task->to_bf16[at + i] = sums_rounded(sum[i]);
    }
}

void sums_bf16(const sums_bf16_t *const *from, int ranks, size_t n, sums_bf16_t *to)
{
    sums_share(&(struct sums_task){.bf16 = from, .ranks = ranks, .to_bf16 = to}, n, sums_of_bf16);
}

static void sums_round_range(const struct sums_task *task, size_t first, size_t end)
{
    const float *from = task->fp32[0];
    sums_bf16_t *to = task->to_bf16;

    for (size_t i = first; i < end; i++)
        to[i] = sums_rounded(from[i]);
}

void sums_round(const float *from, sums_bf16_t *to, size_t n)
{
    sums_share(&(struct sums_task){.fp32 = &from, .to_bf16 = to}, n, sums_round_range);
}

static void sums_widen_range(const struct sums_task *task, size_t first, size_t end)
{
    const sums_bf16_t *from = task->bf16[0];
    float *to = task->to_fp32;

    for (size_t i = first; i < end; i++)
        to[i] = sums_widened(from[i]);
}

void sums_widen(const sums_bf16_t *from, float *to, size_t n)
{
    sums_share(&(struct sums_task){.bf16 = &from, .to_fp32 = to}, n, sums_widen_range);
}
