#include <criterion/criterion.h>
#include <math.h>

#include "daemon/job/job_estimate.h"

Test(job_estimate, a_jobs_cost_follows_from_its_hours_and_joules)
{
    static const struct plan_prices prices = {
        .node_watts = 200, .per_kwh = 0.5, .per_node_hour = 2};
    static const struct {
        double node_seconds, node_share, active_since, joules;
        bool whole; /* joules are of every machine of every attempt */
        enum job_energy_source source;
        double node_hours, kwh, cost;
    } rows[] = {
        {7200, 1,   0,    0,     false, JOB_ENERGY_ESTIMATED, 2, 0.4, 4.2 },
        {7200, 0.5, 0,    0,     false, JOB_ENERGY_ESTIMATED, 1, 0.2, 2.1 },
        {7200, 1,   0,    3.6e6, true,  JOB_ENERGY_MEASURED,  2, 1,   4.5 },
        {7200, 0.5, 0,    3.6e6, true,  JOB_ENERGY_MEASURED,  1, 0.5, 2.25},
        {7200, 1,   0,    3.6e6, false, JOB_ENERGY_ESTIMATED, 2, 0.4, 4.2 },
        {3600, 1,   6400, 0,     false, JOB_ENERGY_ESTIMATED, 3, 0.6, 6.3 }, /* it runs on two nodes */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store_job job = {.node_seconds = rows[i].node_seconds,
                                .node_share = rows[i].node_share,
                                .active_since = rows[i].active_since,
                                .nodes = 2,
                                .measured_joules = rows[i].joules,
                                .joules_whole = rows[i].whole};
        struct job_cost cost = job_cost_of(&job, &prices, 10000);
        cr_expect_eq(cost.source, rows[i].source, "row %zu", i);
        cr_expect_float_eq(cost.node_hours, rows[i].node_hours, 1e-9, "row %zu", i);
        cr_expect_float_eq(cost.kwh, rows[i].kwh, 1e-9, "row %zu", i);
        cr_expect_float_eq(cost.cost, rows[i].cost, 1e-9, "row %zu", i);
    }
}

Test(job_estimate, what_is_not_known_is_not_a_number)
{
    struct store_job job = {.node_seconds = NAN, .node_share = 1};
    struct job_cost cost = job_cost_of(&job, &(struct plan_prices){.node_watts = 200}, 0);

    cr_assert_eq(cost.source, JOB_ENERGY_NONE);
    cr_assert(isnan(cost.node_hours) && isnan(cost.joules) && isnan(cost.cost));
    job.node_seconds = 3600;
    cost = job_cost_of(&job, &(struct plan_prices){0}, 0);
    cr_assert_eq(cost.node_hours, 1);
    cr_assert(isnan(cost.kwh) && isnan(cost.cost), "without watts and prices");
}

Test(job_estimate, energy_for_an_image_counts_trained_or_evaluated_ones)
{
    struct store_job job = {
        .node_seconds = 3600, .node_share = 1, .step = 10, .global_batch = 36, .train_steps = 20};
    const struct plan_prices prices = {.node_watts = 100};

    cr_assert_float_eq(job_cost_of(&job, &prices, 0).joules_per_image, 1000, 1e-6);
    job.train_steps = 0;
    job.evaluated_images = 3600;
    cr_assert_float_eq(job_cost_of(&job, &prices, 0).joules_per_image, 100, 1e-6);
    job.evaluated_images = 0;
    cr_assert(isnan(job_cost_of(&job, &prices, 0).joules_per_image));
}
