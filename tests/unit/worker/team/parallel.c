#include <criterion/criterion.h>
#include <float.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/team/parallel.h"

/* Every unit once, in order, and no share larger than another by more than a unit. */
Test(parallel, ranges_cover_all_evenly)
{
    for (size_t units = 0; units <= 300; units++)
        for (int parts = 1; parts <= 96; parts++) {
            size_t next = 0, smallest = units, largest = 0;
            for (int part = 0; part < parts; part++) {
                struct parallel_range r =
                    parallel_range(units, (struct parallel_share){part, parts});
                cr_assert_eq(r.first, next);
                next = r.end;
                smallest = r.end - r.first < smallest ? r.end - r.first : smallest;
                largest = r.end - r.first > largest ? r.end - r.first : largest;
                for (size_t u = r.first; u < r.end; u++)
                    cr_assert_eq(parallel_owner(u, units, parts), part);
            }
            cr_assert_eq(next, units);
            cr_assert_leq(largest - smallest, 1);
        }
}

/* From 34 units a thread on the largest share is at most 1.03 times the mean. */
Test(parallel, the_largest_share_is_near_the_mean)
{
    for (size_t parts = 1; parts <= 96; parts++)
        for (size_t units = 34 * parts; units < 5000; units++) {
            size_t largest = (units + parts - 1) / parts;
            cr_assert_leq((double)largest * (double)parts, 1.03 * (double)units);
        }
}

static void fill(size_t columns, const struct parallel_block *b, uint8_t *seen)
{
    for (size_t r = b->row; r < b->row + b->rows; r++)
        for (size_t c = b->column; c < b->column + b->columns; c++)
            seen[r * columns + c]++;
}

static void check_matrix(size_t rows, size_t units, size_t columns, size_t width, int parts)
{
    uint8_t *seen = calloc(rows * columns, 1);
    struct parallel_block b[PARALLEL_BLOCKS];

    for (int part = 0; part < parts; part++) {
        int count =
            parallel_matrix(rows, units, columns, width, (struct parallel_share){part, parts}, b);
        cr_assert_leq(count, PARALLEL_BLOCKS);
        for (int i = 0; i < count; i++) {
            cr_assert_eq(b[i].column % width, 0);
            fill(columns, &b[i], seen);
        }
    }
    for (size_t i = 0; i < rows * columns; i++)
        cr_assert_eq(seen[i], 1, "%zu x %zu in %zu x %zu by %d: element %zu came %d times", rows,
                     columns, units, width, parts, i, seen[i]);
    free(seen);
}

Test(parallel, matrices_are_covered_once)
{
    static const int parts[] = {1, 2, 3, 7, 22, 96};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        check_matrix(49, 4, 512, 32, parts[i]);
        check_matrix(100, 100, 70, 64, parts[i]);
        check_matrix(1, 1, 40, 16, parts[i]);
        check_matrix(33, 3, 5, 8, parts[i]);
    }
}

/* Each adds to what all wrote before the barrier. */
struct meeting {
    int before[64], after[64];
};

static void meet(struct parallel_share share, void *context)
{
    struct meeting *m = context;

    for (int round = 1; round <= 20; round++) {
        m->before[share.part] = round;
        parallel_barrier(share);
        int sum = 0;
        for (int i = 0; i < share.parts; i++)
            sum += m->before[i];
        m->after[share.part] += sum == round * share.parts;
        parallel_barrier(share);
    }
}

Test(parallel, barriers_show_what_others_wrote)
{
    for (int threads = 1; threads <= 13; threads += 6) {
        struct meeting m = {{0}, {0}};
        parallel_team(threads, meet, &m);
        for (int i = 0; i < threads; i++)
            cr_assert_eq(m.after[i], 20);
    }
}

/* ---- pieces */

/* In order, all of the share, and none smaller than a grain. */
Test(parallel, pieces_are_the_share)
{
    for (size_t grains = 0; grains <= 100; grains++) {
        struct parallel_share home = {4, 7};
        int pieces = parallel_pieces(grains);
        size_t units = 7 * (grains ? grains : 1), next = parallel_range(units, home).first;

        cr_assert_geq(pieces, 1);
        cr_assert_leq(pieces, PARALLEL_PIECES);
        for (int i = 0; i < pieces; i++) {
            struct parallel_piece piece = parallel_piece(home, i, pieces);
            struct parallel_range r = parallel_range(units, parallel_piece_share(&piece));
            cr_assert_eq(piece.number, i);
            cr_assert_eq(r.first, next);
            cr_assert_lt(r.first, r.end, "piece %d of %zu grains is empty", i, grains);
            next = r.end;
        }
        cr_assert_eq(next, parallel_range(units, home).end);
    }
    cr_assert_eq(parallel_pieces(32), PARALLEL_PIECES);
}

enum { MANY_GRAINS = 32, PASSES = 50, MOST_THREADS = 7 };

struct pieces {
    atomic_int times[PASSES][MOST_THREADS * PARALLEL_PIECES], done;
    int held_up; /* the piece that ends behind all others; -1: none */
    int all;
};

struct worker {
    struct pieces *p;
    int pass;
};

static void count_piece(const struct parallel_piece *piece, void *context)
{
    const struct worker *w = context;
    int lane = parallel_lane();

    cr_assert_eq(lane, piece->home.part * PARALLEL_PIECES + piece->number);
    atomic_fetch_add(&w->p->times[w->pass][lane], 1);
    while (lane == w->p->held_up && w->p->done < w->p->all - 1)
        sched_yield();
    atomic_fetch_add(&w->p->done, 1);
}

static void take_once(struct parallel_share share, void *context)
{
    struct worker w = {context, 0};
    parallel_take(share, MANY_GRAINS, count_piece, &w);
}

static void take_often(struct parallel_share share, void *context)
{
    struct worker w = {context, 0};

    for (; w.pass < PASSES; w.pass++) {
        parallel_take(share, MANY_GRAINS, count_piece, &w);
        if (w.pass % 3 == 2)
            parallel_barrier(share);
    }
}

static void assert_all_once(const struct pieces *p, int passes)
{
    for (int i = 0; i < passes; i++)
        for (int lane = 0; lane < p->all; lane++)
            cr_assert_eq(p->times[i][lane], 1, "pass %d: piece %d came %d times", i, lane,
                         p->times[i][lane]);
}

/* Whoever is held up with one piece, all others are done meanwhile. */
Test(parallel, others_do_what_is_left_of_a_thread_that_is_held_up)
{
    for (int threads = 2; threads <= MOST_THREADS; threads += 5)
        for (int lane = 0; lane < threads * PARALLEL_PIECES; lane++) {
            struct pieces p = {.held_up = lane, .all = threads * PARALLEL_PIECES};
            parallel_team(threads, take_once, &p);
            assert_all_once(&p, 1);
        }
}

/* Also where threads go from one pass to the next without a barrier. */
Test(parallel, pieces_come_once)
{
    for (int threads = 2; threads <= MOST_THREADS; threads++) {
        struct pieces p = {.held_up = -1, .all = threads * PARALLEL_PIECES};
        parallel_team(threads, take_often, &p);
        assert_all_once(&p, PASSES);
    }
}

static void check_alone(const struct parallel_piece *piece, void *context)
{
    struct parallel_share share = parallel_piece_share(piece);
    cr_assert_eq(share.parts, 1);
    cr_assert_eq(parallel_lane(), 0);
    ++*(int *)context;
}

static void take_alone(struct parallel_share share, void *context)
{
    parallel_take(share, MANY_GRAINS, check_alone, context);
}

Test(parallel, one_thread_cuts_nothing)
{
    int times = 0;
    parallel_team(1, take_alone, &times);
    cr_assert_eq(times, 1);
    cr_assert_eq(parallel_lanes(1), 1);
}

static void add_items(int thread, int first, int end, void *context)
{
    atomic_int *sum = context;
    (void)thread;
    cr_assert_lt(first, end);
    for (int i = first; i < end; i++)
        atomic_fetch_add(sum, i);
}

Test(parallel, items_come_once)
{
    for (int items = 0; items < 20; items++) {
        atomic_int sum = 0;
        parallel_run(7, items, add_items, &sum);
        cr_assert_eq(sum, items * (items - 1) / 2);
    }
}

/* ---- denormals */

#ifdef __x86_64__

enum { TINY_THREADS = 3, TINY_COUNT = 4096 };

static void halve(int thread, int first, int end, void *context)
{
    volatile float *numbers = context;

    (void)thread;
    for (int i = first; i < end; i++)
        numbers[i] = numbers[i] / 2;
}

/* A result that is a denormal is written as zero, and one that is read counts as zero: on every
 * thread of a team. So a step full of them costs what a step of zeros does. */
Test(parallel, denormals_are_zero)
{
    static float smallest[TINY_COUNT], denormal[TINY_COUNT];

    for (int i = 0; i < TINY_COUNT; i++) {
        smallest[i] = FLT_MIN;
        denormal[i] = FLT_TRUE_MIN * 1000;
    }
    parallel_run(TINY_THREADS, TINY_COUNT, halve, smallest);
    parallel_run(TINY_THREADS, TINY_COUNT, halve, denormal);
    for (int i = 0; i < TINY_COUNT; i++) {
        cr_assert_eq(memcmp(&smallest[i], &(float){0}, sizeof(float)), 0, "written, at %d", i);
        cr_assert_eq(memcmp(&denormal[i], &(float){0}, sizeof(float)), 0, "read, at %d", i);
    }
}

#endif
