/*
 * libtraincomm's arithmetic, worker/comm/sums.c, with its time: what passes through memory is
 * charged at what one core or the team moves, whichever is less. Where memory is real, the numbers
 * are added up, too.
 */
#define SCALE_SHIM_C
#include "tests/scale/shim.h"

#define sums_fp32  real_fp32
#define sums_bf16  real_bf16
#define sums_copy  real_copy
#define sums_round real_round
#define sums_widen real_widen
#include "worker/comm/sums.c"
#undef sums_fp32
#undef sums_bf16
#undef sums_copy
#undef sums_round
#undef sums_widen

struct scale_memory scale_memory;

/* Of n numbers, of which the threads that sums_share takes have a part each. */
static void kernel_moves(size_t n, double bytes_each)
{
    size_t threads = n / THREAD_FLOATS, most = (size_t)sums_threads;
    double speed = scale_memory.core * (double)(threads < 1 ? 1 : threads < most ? threads : most);

    scale_charge((double)n * bytes_each / (speed < scale_memory.team ? speed : scale_memory.team));
}

void sums_fp32(const float *const *from, int ranks, size_t n, float *to)
{
    kernel_moves(n, 4.0 * (ranks + 1));
    if (!scale_folds)
        real_fp32(from, ranks, n, to);
}

void sums_bf16(const sums_bf16_t *const *from, int ranks, size_t n, sums_bf16_t *to)
{
    kernel_moves(n, 2.0 * (ranks + 1));
    if (!scale_folds)
        real_bf16(from, ranks, n, to);
}

void sums_copy(const float *from, float *to, size_t n)
{
    kernel_moves(n, 8);
    if (!scale_folds)
        real_copy(from, to, n);
}

void sums_round(const float *from, sums_bf16_t *to, size_t n)
{
    kernel_moves(n, 6);
    if (!scale_folds)
        real_round(from, to, n);
}

void sums_widen(const sums_bf16_t *from, float *to, size_t n)
{
    kernel_moves(n, 6);
    if (!scale_folds)
        real_widen(from, to, n);
}
