/* Which rank holds up the others: named once, with its phase and what it costs, and again only
 * after it recovered. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "worker/watch/straggler.h"

#define WORLD 4

static struct stragglers *s;
static struct rank_times every[WORLD];
static struct straggler found;
static const int one_host[9];

static void even_pace(void)
{
    for (int i = 0; i < WORLD; i++)
        every[i] = (struct rank_times){
            {1, 30 + i, 60, 5}
        };
}

static void set_up(void)
{
    s = stragglers_create(WORLD, one_host);
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
        count += stragglers_add(s, every, 200, &found);
    return count;
}

Test(straggler, ranks_of_the_same_pace_are_none)
{
    cr_expect_eq(named(400), 0);
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
    cr_expect_float_eq(found.wait_ms, 178 - 99, 1e-9);          /* that of rank 3 */
    cr_expect_float_eq(found.wait_share, (178 - 99) / 200.0, 1e-9);
    cr_expect_eq(found.steps, STRAGGLER_STEPS);
    cr_expect_eq(found.ranks, 1);
    cr_expect_eq(named(STRAGGLER_MEAN_STEPS - STRAGGLER_STEPS - 1), 0);
    cr_assert_eq(named(1), 1, "once more, by its mean");
    cr_expect_eq(found.steps, STRAGGLER_MEAN_STEPS);
    cr_expect_eq(named(2 * STRAGGLER_MEAN_STEPS), 0);
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
    cr_expect_eq(named(400), 0);
}

Test(straggler, a_rank_alone_has_nobody_to_be_slower_than)
{
    struct stragglers *alone;

    alone = stragglers_create(1, one_host);
    for (int i = 0; i < 20; i++)
        cr_expect_not(stragglers_add(alone, every, 200, &found));
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
    unsigned dice = 1;

    for (int round = 0; round < 200; round++) {
        int world = 2 + round % 8, slow = round % world;
        double others[9];
        int n = 0;
        many = stragglers_create(world, one_host);
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
            any |= stragglers_add(many, times, 500, &found);
        cr_assert(any);
        cr_assert_eq(found.rank, slow);
        cr_assert_float_eq(found.median_ms, (others[(n - 1) / 2] + others[n / 2]) / 2, 1e-9);
        stragglers_destroy(many);
    }
}

/* ---- a few percent, among many, in steps that differ */

#define STEP_MS 1240.0

/* A cluster: `slow` of each rank, 0.05: 5 %. Times are lognormal, drawn by splitmix64. */
struct cluster {
    int world, per_host;
    double jitter;
    uint64_t seed;
    double slow[512];
    struct stragglers *stragglers;
};

static double uniform(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
    double radius = sqrt(-2 * log(uniform(seed)));
    return radius * cos(2 * M_PI * uniform(seed));
}

static void cluster_open(struct cluster *c)
{
    int host[512];

    for (int i = 0; i < c->world; i++)
        host[i] = i - i % c->per_host;
    c->stragglers = stragglers_create(c->world, host);
}

/* The step in which a rank was named, 0: none. */
static int cluster_run(struct cluster *c, int steps)
{
    static struct rank_times times[512];

    for (int step = 1; step <= steps; step++) {
        double longest = 0;
        for (int i = 0; i < c->world; i++) {
            double ms = STEP_MS * (1 + c->slow[i]) * exp(c->jitter * normal(&c->seed));
            times[i] = (struct rank_times){
                {0.01 * ms, 0.3 * ms, 0.6 * ms, 0.09 * ms}
            };
            longest = fmax(longest, ms);
        }
        if (stragglers_add(c->stragglers, times, longest, &found))
            return step;
    }
    return 0;
}

static void cluster_close(struct cluster *c)
{
    stragglers_destroy(c->stragglers);
}

Test(straggler, a_node_of_256_that_is_5_percent_slow_is_named_within_200_steps)
{
    struct cluster c = {.world = 512, .per_host = 2, .jitter = 0.02, .seed = 1};

    cluster_open(&c);
    cr_assert_eq(cluster_run(&c, 100), 0);
    c.slow[346] = c.slow[347] = 0.05;
    cr_assert_neq(cluster_run(&c, 200), 0);
    cr_expect_eq(found.rank / 2, 173);
    cr_expect_eq(found.ranks, 2);
    cr_expect_float_eq(found.median_ms, STEP_MS, 0.01 * STEP_MS);
    cr_expect_float_eq(found.busy_ms, 1.05 * STEP_MS, 0.01 * STEP_MS);
    cr_expect_eq(found.phase, RANK_BACKWARD);
    cr_expect_eq(cluster_run(&c, 1000), 0, "named again");
    cluster_close(&c);
}

Test(straggler, jitter_alone_names_none_in_10000_steps)
{
    struct cluster c = {.world = 256, .per_host = 1, .jitter = 0.02, .seed = 2};

    cluster_open(&c);
    cr_expect_eq(cluster_run(&c, 10000), 0);
    cluster_close(&c);
}

/* Without jitter it is known: all wait as long as it takes longer. Of two that are as slow each
 * costs what it costs without the other. */
Test(straggler, costs_what_those_that_keep_pace_wait)
{
    struct cluster c = {.world = 256, .per_host = 1};

    c.slow[7] = c.slow[9] = 0.1;
    cluster_open(&c);
    for (int rank = 7; rank <= 9; rank += 2) {
        cr_assert_neq(cluster_run(&c, 200), 0);
        cr_expect_eq(found.rank, rank);
        cr_expect_float_eq(found.wait_ms, 0.1 * STEP_MS, 1e-6);
        cr_expect_float_eq(found.wait_share, 0.1 / 1.1, 1e-6);
    }
    cluster_close(&c);
}

Test(straggler, is_named_again_when_its_mean_rises_again)
{
    struct cluster c = {.world = 64, .per_host = 1, .jitter = 0.02, .seed = 3};

    cluster_open(&c);
    for (int i = 0; i < 2; i++) {
        c.slow[5] = 0.06;
        cr_assert_neq(cluster_run(&c, 200), 0);
        cr_expect_eq(found.rank, 5);
        c.slow[5] = 0;
        cr_expect_eq(cluster_run(&c, 400), 0);
    }
    cluster_close(&c);
}

/* The slower kind of two, 20 % apart, or all different, by 2 %. */
Test(straggler, a_mixed_cluster_has_none)
{
    for (int kinds = 0; kinds < 2; kinds++)
        for (int world = 4; world <= 256; world *= 4) {
            struct cluster c = {.world = world, .per_host = 1, .jitter = 0.02, .seed = 4};
            for (int i = 0; i < world; i++)
                c.slow[i] = kinds ? 0.2 * (i % 2) : 0.02 * i / world;
            cluster_open(&c);
            cr_expect_eq(cluster_run(&c, 1000), 0, "rank %d of %d", found.rank, world);
            cluster_close(&c);
        }
}

/* Two ranks on two cores that others use too: steps that differ by a third, and more at times. */
Test(straggler, a_noisy_machine_has_none)
{
    struct cluster c = {.world = 2, .per_host = 2, .jitter = 0.1, .seed = 5};

    cluster_open(&c);
    cr_expect_eq(cluster_run(&c, 10000), 0);
    for (int burst = 0; burst < 100; burst++) {
        c.slow[burst % 2] = 0.2 + 0.1 * (burst % 3 == 0);
        cr_expect_eq(cluster_run(&c, 60), 0);
        c.slow[burst % 2] = 0;
    }
    cluster_close(&c);
}

/* ---- by host */

Test(straggler, hosts_are_the_slowest_first)
{
    const int host[] = {0, 0, 2, 2, 0, 5};
    struct rank_times times[6];
    struct host_pace hosts[6];

    for (int i = 0; i < 6; i++)
        times[i] = (struct rank_times){
            {1, 2, 3, 4 + i}
        };
    cr_assert_eq(host_paces(times, host, 6, hosts), 3);
    const struct host_pace want[] = {
        {5, 1, 15      },
        {2, 2, 12.5    },
        {0, 3, 35 / 3.0}
    };
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(hosts[i].first, want[i].first);
        cr_expect_eq(hosts[i].ranks, want[i].ranks);
        cr_expect_float_eq(hosts[i].busy_ms, want[i].busy_ms, 1e-9);
    }
}
