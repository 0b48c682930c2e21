/*
 * Counting a thread's work without doing it. While dry_run of a thread points to a struct, the
 * kernels that it calls add what they would do and touch no memory, and barriers let it pass: so
 * the shares of any number of threads are counted one after the other, by the code that shares.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What one thread does from a barrier to the next. */
struct dry_phase {
    double flops; /* of products, as they are made: Winograd's count as fewer */
    double bytes; /* read and written by what makes no products */
};

enum { DRY_PHASES = 1024 };

struct dry_run {
    int phases; /* the last one's index: as many barriers were passed. More joins the last */
    struct dry_phase phase[DRY_PHASES];
};

#define DRY_RUN_LOCAL __attribute__((tls_model("initial-exec")))
extern _Thread_local struct dry_run *dry_run DRY_RUN_LOCAL; /* NULL: work is done */

/* Floats of a vector of the engine whose shares are counted, not always the loaded one: 4 (SSE),
 * 8 (AVX2) or 16 (AVX-512), from before its model or convolution is made. 0: the loaded one. */
extern _Thread_local size_t dry_run_vec DRY_RUN_LOCAL;

static inline bool dry_run_products(size_t m, size_t n, size_t k)
{
    if (dry_run)
        dry_run->phase[dry_run->phases].flops += 2.0 * (double)m * (double)n * (double)k;
    return dry_run;
}

static inline bool dry_run_moves(size_t floats)
{
    if (dry_run)
        dry_run->phase[dry_run->phases].bytes += 4.0 * (double)floats;
    return dry_run;
}

static inline bool dry_run_moves_bf16(size_t numbers)
{
    if (dry_run)
        dry_run->phase[dry_run->phases].bytes += 2.0 * (double)numbers;
    return dry_run;
}

/* Sees the teams of its thread as they end: what each share would have done (dry), or how long the
 * team took. */
struct team_watch {
    bool dry;
    void (*team)(int parts, const struct dry_run *shares, double seconds, void *context);
    void *context;
};
extern _Thread_local struct team_watch *team_watch DRY_RUN_LOCAL; /* NULL: nobody watches */
