/* Counts the work of threads without doing it. While a thread's dry_run is set, the kernels it
 * calls add up their work and touch no memory, and barriers return at once: so the code that makes
 * the shares counts them, for any number of threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Work of one thread between two barriers */
struct dry_phase {
    double flops; /* of products as computed: fewer with Winograd */
    double bytes; /* read and written outside of products */
};

enum { DRY_PHASES = 1024 };

struct dry_run {
    int phases; /* index of the current one: the number of barriers passed. The last one takes any
                   further ones */
    struct dry_phase phase[DRY_PHASES];
};

#define DRY_RUN_LOCAL __attribute__((tls_model("initial-exec")))
extern _Thread_local struct dry_run *dry_run DRY_RUN_LOCAL; /* NULL: do the work */

/* Vector length, in floats, of the engine whose shares are counted: 4 (SSE), 8 (AVX2) or 16
 * (AVX-512), set before its model or convolution is created. 0: the loaded one. */
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

/* Observes its thread's teams when they end: the counted shares (dry), or the time the team took */
struct team_watch {
    bool dry;
    void (*team)(int parts, const struct dry_run *shares, double seconds, void *context);
    void *context;
};
extern _Thread_local struct team_watch *team_watch DRY_RUN_LOCAL; /* may be NULL */
