#include "daemon/sweep/sweep_preview.h"

#include <criterion/criterion.h>
#include <math.h>

/* Jobs of these seconds, each from 10 % less to 10 % more, and nothing else known of them. */
static size_t priced_points(const double *seconds, size_t count, struct sweep_cost *points)
{
    for (size_t i = 0; i < count; i++) {
        for (int amount = 0; amount < SWEEP_AMOUNTS; amount++)
            points[i].of[amount] = (struct plan_band){NAN, NAN, NAN};
        points[i].of[SWEEP_SECONDS] =
            (struct plan_band){seconds[i], 0.9 * seconds[i], 1.1 * seconds[i]};
    }
    return count;
}

static void cost_is(struct plan_band got, double value, double low, double high)
{
    cr_assert_float_eq(got.value, value, 1e-9, "value %g", got.value);
    cr_assert_float_eq(got.low, low, 1e-9, "low %g", got.low);
    cr_assert_float_eq(got.high, high, 1e-9, "high %g", got.high);
}

static const double seconds[] = {10, 20, 30, 40};
static struct sweep_cost points[4], sum;
static struct plan_band elapsed;

Test(sweep_cost, sums_all_jobs_of_a_rung)
{
    struct sweep_rung one = {.jobs = 4, .whole = 4, .from = 1, .together = 1};
    struct sweep_rung two = {.jobs = 4, .whole = 4, .from = 1, .together = 2};
    size_t count = priced_points(seconds, 4, points);

    sweep_rung_cost(points, count, &one, &sum, &elapsed);
    cost_is(sum.of[SWEEP_SECONDS], 100, 90, 110);
    cost_is(elapsed, 100, 90, 110);
    cr_assert(isnan(sum.of[SWEEP_KWH].value), "what is not known stays so");
    sweep_rung_cost(points, count, &two, &sum, &elapsed);
    cost_is(sum.of[SWEEP_SECONDS], 100, 90, 110);
    cost_is(elapsed, 60, 54, 66); /* 10 + 30 beside 20 + 40 */
}

Test(sweep_cost, does_not_know_which_points_go_on)
{
    struct sweep_rung half = {.jobs = 2, .whole = 2, .from = 1, .together = 2};

    sweep_rung_cost(points, priced_points(seconds, 4, points), &half, &sum, &elapsed);
    cost_is(sum.of[SWEEP_SECONDS], 50, 27, 77); /* 25 each; 10 and 20 at least; 30 and 40 at most */
    cost_is(elapsed, 25, 18, 44);
}

Test(sweep_cost, gives_a_range_for_jobs_that_may_stop_early)
{
    struct sweep_rung stops = {.jobs = 4, .whole = 2, .from = 0.25, .together = 1};

    sweep_rung_cost(points, priced_points(seconds, 4, points), &stops, &sum, &elapsed);
    cost_is(sum.of[SWEEP_SECONDS], 100, 9 + 18 + 0.25 * (27 + 36), 110);
}

Test(sweep_cost, is_unknown_if_that_of_one_job_is)
{
    struct sweep_rung all = {.jobs = 4, .whole = 4, .from = 1, .together = 1};

    priced_points(seconds, 4, points);
    points[2].of[SWEEP_SECONDS] = (struct plan_band){NAN, NAN, NAN};
    sweep_rung_cost(points, 4, &all, &sum, &elapsed);
    cr_assert(isnan(sum.of[SWEEP_SECONDS].value) && isnan(elapsed.value) && isnan(elapsed.high));
}
