/*
 * Work sharing and synchronisation of a rank's threads.
 *
 * A pass consists of equal units in a fixed order (register tiles of a product row by row, tiles of
 * pixels by blocks of channels, channels); thread t of T gets the units [U t / T, U (t + 1) / T):
 * the largest share is at most 1 + T / U of the mean. The split depends on U and T only, and
 * reductions go through the threads in order, so the same number of threads yields the same bits.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A thread of a team: 0 <= part < parts */
struct parallel_share {
    int part, parts;
};
#define PARALLEL_ALL ((struct parallel_share){0, 1})

struct parallel_range {
    size_t first, end;
};

/* A share of `units`; may be empty. */
static inline struct parallel_range parallel_range(size_t units, struct parallel_share share)
{
    size_t part = (size_t)share.part, parts = (size_t)share.parts;
    return (struct parallel_range){units * part / parts, units * (part + 1) / parts};
}

/* Possible with more threads than units. */
static inline bool parallel_is_empty(size_t units, struct parallel_share share)
{
    struct parallel_range r = parallel_range(units, share);
    return r.first == r.end;
}

/* The thread that has unit `unit` of `units`. */
static inline int parallel_owner(size_t unit, size_t units, int parts)
{
    return (int)(((unit + 1) * (size_t)parts - 1) / units);
}

/* Part of a matrix */
struct parallel_block {
    size_t row, rows, column, columns;
};

enum { PARALLEL_BLOCKS = 3 };

/* Makes the blocks of a share of rows x columns units, counted row by row. Returns their number. */
int parallel_blocks(size_t rows, size_t columns, struct parallel_share share,
                    struct parallel_block block[PARALLEL_BLOCKS]);

/* As parallel_blocks, in elements: rows in `row_units` groups that differ by one at most (row_units
 * <= rows), columns in blocks of `width`, the last perhaps narrower. */
int parallel_matrix(size_t rows, size_t row_units, size_t columns, size_t width,
                    struct parallel_share share, struct parallel_block block[PARALLEL_BLOCKS]);

/* ---- teams */

typedef void parallel_team_body(struct parallel_share share, void *context);

/* Calls body in each thread of a team and waits. Flushes denormals to zero inside (and afterwards
 * in the calling thread, part 0): they cost a hundred cycles. Shares are of the threads that
 * started. */
void parallel_team(int threads, parallel_team_body *body, void *context);

/* Call in a body: waits until all threads of the team are here; their writes are visible
 * afterwards. With a trace, the time goes to the layer's TRACE_WAIT. */
void parallel_barrier(struct parallel_share share);

/* ---- pieces: work stealing
 *
 * A disturbed or slower core makes all others wait at the next barrier. So a share of a long pass
 * is cut into pieces, each half as large as the one before (the last two are equal); a thread works
 * on its own, then on those that others have not begun. Pieces depend on the numbers of threads and
 * units only, and their sums are taken in lanes that are added in order: the same number of threads
 * still yields the same bits. */
enum { PARALLEL_PIECES = 5 };

struct parallel_piece {
    struct parallel_share home; /* the share it is cut from */
    struct parallel_share of;   /* its part of that share */
    int number;                 /* 0 <= number < PARALLEL_PIECES */
};

/* The piece as a share of all units. */
static inline struct parallel_share parallel_piece_share(const struct parallel_piece *p)
{
    return (struct parallel_share){p->home.part * p->of.parts + p->of.part,
                                   p->home.parts * p->of.parts};
}

/* Number of pieces of a share of `grains`; no piece is smaller than a grain. */
int parallel_pieces(size_t grains);
struct parallel_piece parallel_piece(struct parallel_share home, int number, int pieces);

typedef void parallel_piece_body(const struct parallel_piece *piece, void *context);

/* Call in a body, in all threads with the same `grains`: works on pieces until all have been begun.
 * Others' results are complete after the next barrier. Threads may have their own `context`. */
void parallel_take(struct parallel_share share, size_t grains, parallel_piece_body *body,
                   void *context);

/* Lane for sums that are added in order later: of the piece that this thread works on, or of its
 * share. 0 <= lane < parallel_lanes(threads). */
int parallel_lane(void);
static inline int parallel_lanes(int threads)
{
    return threads > 1 ? threads * PARALLEL_PIECES : 1;
}

/* Gets the items [first, end) of a thread; not called for an empty range. */
typedef void parallel_body(int thread, int first, int end, void *context);

/* Runs a team over items that need no barrier. */
void parallel_run(int threads, int items, parallel_body *body, void *context);

/* ---- helper threads, which decode images or watch */

/* Starts a thread that may run on any CPU of the rank and takes no signals: otherwise all helpers
 * would inherit the CPU that OMP_PROC_BIND bound their creator to. name: at most 15 bytes. Returns
 * 0 or an errno value. */
int helper_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

/* Sets *cpus to the CPUs of all of OpenMP's places and returns their number; 0 if OpenMP does not
 * bind threads. */
int helper_thread_places(cpu_set_t *cpus);
