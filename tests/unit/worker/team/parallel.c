#include <criterion/criterion.h>
#include <float.h>
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
