/*
 * How a rank's threads share a pass, and how they meet.
 *
 * The rule: a pass is a number of equal units in a fixed order (register tiles of a product row by
 * row, tiles of pixels by blocks of channels, channels), and thread t of T gets the units
 * [U t / T, U (t + 1) / T). So shares are contiguous and differ by one unit at most: the largest is
 * at most 1 + T / U of the mean, which is 1.03 from 34 units a thread on, whatever the batch. The
 * split depends on the two numbers alone, and whoever reduces goes through the threads in order:
 * the same thread count gives the same bits.
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

/* A thread of a team: 0 <= part < parts. */
struct parallel_share {
    int part, parts;
};
#define PARALLEL_ALL ((struct parallel_share){0, 1})

struct parallel_range {
    size_t first, end;
};

/* A share of `units`, perhaps empty. */
static inline struct parallel_range parallel_range(size_t units, struct parallel_share share)
{
    size_t part = (size_t)share.part, parts = (size_t)share.parts;
    return (struct parallel_range){units * part / parts, units * (part + 1) / parts};
}

/* With more threads than units. */
static inline bool parallel_is_empty(size_t units, struct parallel_share share)
{
    struct parallel_range r = parallel_range(units, share);
    return r.first == r.end;
}

/* Who has unit `unit` of `units`. */
static inline int parallel_owner(size_t unit, size_t units, int parts)
{
    return (int)(((unit + 1) * (size_t)parts - 1) / units);
}

/* Part of a matrix. */
struct parallel_block {
    size_t row, rows, column, columns;
};

enum { PARALLEL_BLOCKS = 3 };

/* A share of rows x columns units that are counted row by row: the end of a row, whole rows, the
 * beginning of a row. Returns how many of them there are. */
int parallel_blocks(size_t rows, size_t columns, struct parallel_share share,
                    struct parallel_block block[PARALLEL_BLOCKS]);

/* The same in elements: rows in `row_units` parts that differ by one at most (row_units <= rows),
 * columns in blocks of `width`, the last of which may be narrower. Higher parts count for more. */
int parallel_matrix(size_t rows, size_t row_units, size_t columns, size_t width,
                    struct parallel_share share, struct parallel_block block[PARALLEL_BLOCKS]);

/* ---- teams */

typedef void parallel_team_body(struct parallel_share share, void *context);

/* Calls body once a thread, all at the same time, and waits. Denormals are zero inside (and stay so
 * in the calling thread, which is part 0): gradients fade into them, and they cost a hundred cycles
 * each. If the system gives fewer threads, the shares are of those. */
void parallel_team(int threads, parallel_team_body *body, void *context);

/* In a body: waits until all threads of the team are here. What they wrote before, all see
 * behind. While there is a trace, the waiting goes to TRACE_WAIT of the layer. */
void parallel_barrier(struct parallel_share share);

/* ---- pieces: work for whoever is free
 *
 * A core that is disturbed or slower than the others keeps all of them waiting at the next barrier.
 * So a share of a long pass is cut into pieces, each half as large as the one before it (only the
 * last two are equal); a thread works on its own ones, then on those that others have not begun.
 * Whoever works on a piece: where it begins and ends depends on the numbers of threads and units
 * alone, and what is summed is summed piece by piece, in lanes that are added in order. So the same
 * thread count still gives the same bits. */
enum { PARALLEL_PIECES = 5 };

struct parallel_piece {
    struct parallel_share home; /* whose share it is cut from */
    struct parallel_share of;   /* which part of it */
    int number;                 /* 0 <= number < PARALLEL_PIECES */
};

/* As a share of all units. */
static inline struct parallel_share parallel_piece_share(const struct parallel_piece *p)
{
    return (struct parallel_share){p->home.part * p->of.parts + p->of.part,
                                   p->home.parts * p->of.parts};
}

/* How many pieces a share of so many grains is cut into: none is smaller than a grain, which is
 * what is not worth cutting. */
int parallel_pieces(size_t grains);
struct parallel_piece parallel_piece(struct parallel_share home, int number, int pieces);

typedef void parallel_piece_body(const struct parallel_piece *piece, void *context);

/*
 * In a body, where all threads of the team come: works on pieces until all have been begun. As with
 * shares, what others did is there behind the next barrier; `grains` is the same in all threads;
 * `context` may differ, as where it names memory of the thread that works.
 */
void parallel_take(struct parallel_share share, size_t grains, parallel_piece_body *body,
                   void *context);

/* Where sums go, so that they can be added in order: to a lane of the piece that this thread works
 * on, or of its share. 0 <= lane < parallel_lanes(threads). */
int parallel_lane(void);
static inline int parallel_lanes(int threads)
{
    return threads > 1 ? threads * PARALLEL_PIECES : 1;
}

/* Gets the items [first, end) of a thread; not called for a thread without any. */
typedef void parallel_body(int thread, int first, int end, void *context);

/* A team for items that need no barrier. */
void parallel_run(int threads, int items, parallel_body *body, void *context);

/* Threads of a rank beside those that compute: they decode images, or watch. */

/*
 * Starts one that may run on any cpu of the rank and takes no signals. OMP_PROC_BIND binds the
 * calling thread to the first of OpenMP's places, and a thread inherits its maker's cpus: without
 * this all helpers would share a core with the thread whose step the others wait for.
 * name: at most 15 bytes, for top -H and debuggers. Returns 0, or errno's number.
 */
int helper_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

/* The cpus of all of OpenMP's places, and how many they are; none where OpenMP binds no threads. */
int helper_thread_places(cpu_set_t *cpus);
