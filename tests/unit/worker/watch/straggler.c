/* Which rank holds up the others: named once, with its phase, and again only after it recovered. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "worker/watch/straggler.h"

#define WORLD 4

static struct stragglers *s;
static struct rank_times every[WORLD];
static struct straggler found;

static void even_pace(void)
{
    for (int i = 0; i < WORLD; i++)
        every[i] = (struct rank_times){
            {1, 30 + i, 60, 5}
        };
}

static void set_up(void)
{
    struct error e;
    cr_assert_eq(stragglers_create(WORLD, &s, &e), 0);
    even_pace();
}

static void tear_down(void)
{
    stragglers_destroy(s);
}

TestSuite(straggler, .init = set_up, .fini = tear_down);

/* Adds so many steps; how many named a rank. */
static int named(int steps)
{
    int count = 0;
    for (int i = 0; i < steps; i++)
        count += stragglers_add(s, every, &found);
    return count;
}

Test(straggler, ranks_of_the_same_pace_are_none)
{
    cr_expect_eq(named(100), 0);
}

Test(straggler, is_named_once_with_its_phase)
{
    every[2].ms[RANK_BACKWARD] = 140;
    cr_expect_eq(named(STRAGGLER_STEPS - 1), 0);
    cr_assert_eq(named(1), 1);
    cr_expect_eq(found.rank, 2);
    cr_expect_eq(found.phase, RANK_BACKWARD);
    cr_expect_float_eq(found.busy_ms, 1 + 32 + 140 + 5, 1e-9);
    cr_expect_float_eq(found.median_ms, 1 + 31 + 60 + 5, 1e-9); /* of ranks 0, 1 and 3 */
    cr_expect_eq(named(50), 0);
}

Test(straggler, waiting_for_images_is_told_apart)
{
    every[0].ms[RANK_DATA] = 400;
    cr_assert_eq(named(STRAGGLER_STEPS), 1);
    cr_expect_eq(found.rank, 0);
    cr_expect_str_eq(rank_phase_name(found.phase), "data");
}

Test(straggler, a_short_hiccup_is_none)
{
    for (int i = 0; i < 20; i++) {
        every[1].ms[RANK_FORWARD] = 500;
        cr_expect_eq(named(STRAGGLER_STEPS - 1), 0);
        even_pace();
        cr_expect_eq(named(1), 0);
    }
}

Test(straggler, is_named_again_after_it_recovered)
{
    every[3].ms[RANK_FORWARD] = 300;
    cr_assert_eq(named(STRAGGLER_STEPS), 1);
    even_pace();
    named(STRAGGLER_STEPS - 1); /* not long enough */
    every[3].ms[RANK_FORWARD] = 300;
    cr_expect_eq(named(2 * STRAGGLER_STEPS), 0);
    even_pace();
    named(STRAGGLER_STEPS);
    every[3].ms[RANK_FORWARD] = 300;
    cr_expect_eq(named(2 * STRAGGLER_STEPS), 1);
}

Test(straggler, steps_too_short_to_tell_are_left_alone)
{
    for (int i = 0; i < WORLD; i++)
        every[i] = (struct rank_times){
            {0, 0.2, 0.4, 0}
        };
    every[1].ms[RANK_FORWARD] = 1.5;
    cr_expect_eq(named(100), 0);
}

Test(straggler, a_rank_alone_has_nobody_to_be_slower_than)
{
    struct stragglers *alone;
    struct error e;

    cr_assert_eq(stragglers_create(1, &alone, &e), 0);
    for (int i = 0; i < 20; i++)
        cr_expect_not(stragglers_add(alone, every, &found));
    stragglers_destroy(alone);
}

/* Against the plain way: the others sorted for each rank, for 1 to 9 ranks with equal times among
 * them. The mean and the median of a straggler are what shows of it. */
static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

Test(straggler, medians_are_of_the_others)
{
    struct rank_times times[9];
    struct stragglers *many;
    struct error e;
    unsigned dice = 1;

    for (int round = 0; round < 200; round++) {
        int world = 2 + round % 8, slow = round % world;
        double others[9];
        int n = 0;
        cr_assert_eq(stragglers_create(world, &many, &e), 0);
        for (int i = 0; i < world; i++) {
            dice = dice * 1103515245 + 12345;
            times[i] = (struct rank_times){
                {1 + (dice >> 16) % 3, 20, 40, 2}
            };
            if (i == slow)
                times[i].ms[RANK_BACKWARD] = 400;
            else
                others[n++] = rank_busy_ms(&times[i]);
        }
        qsort(others, (size_t)n, sizeof *others, ascending);
        bool any = false;
        for (int step = 0; step < STRAGGLER_STEPS; step++)
            any |= stragglers_add(many, times, &found);
        cr_assert(any);
        cr_assert_eq(found.rank, slow);
        cr_assert_float_eq(found.median_ms, (others[(n - 1) / 2] + others[n / 2]) / 2, 1e-9);
        stragglers_destroy(many);
    }
}
