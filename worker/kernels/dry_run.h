/*
 * Counting a thread's work without doing it. While dry_run of a thread points to a struct, the
 * kernels that it calls add what they would do and touch no memory, and barriers let it pass: so
 * the shares of any number of threads are counted one after the other, by the code that shares.
 */
#ifndef TRAIND_WORKER_KERNELS_DRY_RUN_H
#define TRAIND_WORKER_KERNELS_DRY_RUN_H

#include <stdbool.h>
#include <stddef.h>

struct dry_run {
    double flops; /* of products, as they are made: Winograd's count as fewer */
    double bytes; /* read and written by what makes no products */
    int barriers;
};

/* NULL: work is done. */
extern _Thread_local struct dry_run *dry_run __attribute__((tls_model("initial-exec")));

static inline bool dry_run_products(size_t m, size_t n, size_t k)
{
    if (dry_run)
        dry_run->flops += 2.0 * (double)m * (double)n * (double)k;
    return dry_run;
}

static inline bool dry_run_moves(size_t floats)
{
    if (dry_run)
        dry_run->bytes += 4.0 * (double)floats;
    return dry_run;
}

#endif
