#include <criterion/criterion.h>
#include <math.h>

#include "daemon/job/job_forecast.h"

static const struct store_job nothing_known = {.state = JOB_STARTING,
                                               .train_steps = 100,
                                               .time_limit_seconds = NAN,
                                               .predicted_seconds = NAN,
                                               .predicted_low_seconds = NAN,
                                               .predicted_high_seconds = NAN,
                                               .images_per_sec = NAN};

static const struct forecast_pace alike;

Test(job_forecast, without_known_speed_the_end_is_unknown)
{
    struct forecast_end end = forecast_running(&nothing_known, &alike, 5);
    cr_expect_eq(end.soonest, 0);
    cr_expect_eq(end.likely, INFINITY);
    cr_expect_eq(end.latest, INFINITY);
}

Test(job_forecast, a_running_job_by_its_progress)
{
    struct store_job job = nothing_known;
    job.state = JOB_RUNNING;
    job.step = 40;
    job.global_batch = 50;
    job.images_per_sec = 10;
    struct forecast_end end = forecast_running(&job, &alike, 200);
    cr_expect_float_eq(end.likely, 300, 1e-9);
    cr_expect_float_eq(end.soonest, 240, 1e-9);
    cr_expect_float_eq(end.latest, 375, 1e-9);
    job.time_limit_seconds = 460; /* 260 s of it are left */
    end = forecast_running(&job, &alike, 200);
    cr_expect_float_eq(end.likely, 260, 1e-9);
    cr_expect_float_eq(end.latest, 260, 1e-9);
    cr_expect_float_eq(end.soonest, 240, 1e-9);
}

Test(job_forecast, remaining_evaluations_are_included)
{
    struct store_job job = nothing_known;
    job.state = JOB_RUNNING;
    job.step = 40;
    job.global_batch = 50;
    job.images_per_sec = 10;
    job.evaluations =
        4; /* at the steps 25, 50, 75 and 100; one image costs a third of a trained one */
    job.images_per_eval = 600;
    struct forecast_end end = forecast_running(&job, &alike, 200);
    cr_expect_float_eq(end.likely, 300 + 3 * 20, 1e-9);
    cr_expect_float_eq(end.soonest, 240 + 3 * 10, 1e-9);
    cr_expect_float_eq(end.latest, 375 + 3 * 40, 1e-9);
    job.step = 50;
    job.state = JOB_EVALUATING; /* half of it may be done */
    end = forecast_running(&job, &alike, 200);
    cr_expect_float_eq(end.likely, 250 + 2.5 * 20, 1e-9);
    job.step = 100;
    end = forecast_running(&job, &alike, 200);
    cr_expect_float_eq(end.likely, 10, 1e-9);
    cr_expect_float_eq(end.latest, 40, 1e-9);
    cr_expect_eq(end.soonest, 0);
}

Test(job_forecast, a_resumed_job_before_its_first_step)
{
    struct store_job job = nothing_known;
    job.step = 60; /* of its checkpoint */
    job.global_batch = 50;
    job.images_per_sec = 10; /* before it was stopped */
    job.predicted_seconds = 1000;
    job.predicted_low_seconds = 900;
    job.predicted_high_seconds = 1400;
    cr_expect_float_eq(forecast_running(&job, &alike, 3).likely, 200, 1e-9);
    job.images_per_sec = NAN; /* other workers */
    struct forecast_end end = forecast_running(&job, &alike, 3);
    cr_expect_float_eq(end.likely, 397, 1e-9);
    cr_expect_float_eq(end.soonest, 357, 1e-9);
    cr_expect_float_eq(end.latest, 557, 1e-9);
}

Test(job_forecast, before_the_first_step_by_the_plan)
{
    struct store_job job = nothing_known;
    job.predicted_seconds = 100;
    job.predicted_low_seconds = 90;
    job.predicted_high_seconds = 140;
    struct forecast_end end = forecast_running(&job, &alike, 95);
    cr_expect_float_eq(end.likely, 5, 1e-9);
    cr_expect_eq(end.soonest, 0);
    cr_expect_float_eq(end.latest, 45, 1e-9);
    end = forecast_queued(&job);
    cr_expect_eq(end.latest, 140);
    job.time_limit_seconds = 60;
    end = forecast_queued(&job);
    cr_expect_eq(end.latest, 60);
    cr_expect_eq(end.likely, 60);
}

Test(job_forecast, a_time_limit_alone_bounds_the_end_but_is_no_guess)
{
    struct store_job job = nothing_known;
    job.time_limit_seconds = 60;
    struct forecast_end end = forecast_queued(&job);
    cr_expect_eq(end.latest, 60);
    cr_expect_eq(end.likely, INFINITY);
    cr_expect_eq(end.soonest, 0);
}

Test(job_forecast, the_first_gap_that_is_large_enough)
{
    const struct forecast_span spans[] = {
        {2, 100     },
        {1, 50      },
        {1, INFINITY}
    };
    int by;
    cr_expect_eq(forecast_fit(spans, 3, 4, 1, 0, &by), 50);
    cr_expect_eq(by, 1);
    cr_expect_eq(forecast_fit(spans, 3, 4, 2, 0, &by), 100);
    cr_expect_eq(by, 0);
    cr_expect_eq(forecast_fit(spans, 3, 4, 4, 0, &by), INFINITY);
    cr_expect_eq(by, -1);
    cr_expect_eq(forecast_fit(spans, 3, 5, 1, 0, &by), 0, "there is room at once");
    cr_expect_eq(forecast_fit(spans, 3, 4, 1, 70, NULL), 70, "and later");
}

Test(job_forecast, times_are_worded_by_their_length)
{
    static const struct {
        double seconds;
        const char *words;
    } cases[] = {
        {0,      "in less than a minute"},
        {29,     "in less than a minute"},
        {61,     "in about 1 min"       },
        {2400,   "in about 40 min"      },
        {12060,  "in about 3 h 20 min"  },
        {432000, "in about 5 days"      },
    };
    char text[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        forecast_words(cases[i].seconds, text, sizeof text);
        cr_expect_str_eq(text, cases[i].words);
    }
}

/* Steps 0 to 49 of images of a quarter of the arithmetic, the others of the largest. */
static const struct forecast_pace grows = {
    .parts = {{0, 1, 0.25}, {50, 1, 1}},
      .count = 2, .evaluation = 2
};

Test(job_forecast, images_that_grow_take_longer)
{
    struct store_job job = nothing_known;
    job.state = JOB_RUNNING;
    job.step = 20;
    job.global_batch = 50;
    job.images_per_sec = 40; /* 5 s for 4 steps; of the largest 5 s a step */
    cr_expect_float_eq(forecast_steps(&grows, 20, 100), 30 * 0.25 + 50, 1e-9);
    struct forecast_end end = forecast_running(&job, &grows, 20);
    cr_expect_float_eq(end.likely, 30 * 1.25 + 50 * 5, 1e-9);
    job.step = 50; /* the newest step was still a small one */
    end = forecast_running(&job, &grows, 20);
    cr_expect_float_eq(end.likely, 50 * 5, 1e-9);
    job.step = 60;
    job.images_per_sec = 10;
    end = forecast_running(&job, &grows, 20);
    cr_expect_float_eq(end.likely, 40 * 5, 1e-9);
}

Test(job_forecast, batches_that_shrink_take_longer)
{
    static const struct forecast_pace fills = {
        .parts = {{0, 4, 0.25}, {50, 1, 1}},
          .count = 2
    };
    struct store_job job = nothing_known;
    job.state = JOB_RUNNING;
    job.step = 20;
    job.global_batch = 50;
    job.images_per_sec = 40; /* 200 images a step: 5 s, as behind */
    cr_expect_float_eq(forecast_running(&job, &fills, 20).likely, 80 * 5, 1e-9);
}

Test(job_forecast, the_time_to_a_step_includes_its_evaluation)
{
    struct store_job job = nothing_known;
    job.state = JOB_RUNNING;
    job.step = 20;
    job.global_batch = 50;
    job.images_per_sec = 40;
    job.evaluations = 4;
    job.images_per_eval = 600; /* a third of a trained one each, twice, at the largest size: 40 s */
    struct forecast_end end = forecast_until(&job, &grows, 75);
    cr_expect_float_eq(end.likely, 30 * 1.25 + 25 * 5 + 3 * 40, 1e-9);
    cr_expect_lt(end.soonest, end.likely);
    cr_expect_gt(end.latest, end.likely);
    job.images_per_sec = NAN;
    cr_expect_eq(forecast_until(&job, &grows, 75).latest, INFINITY);
}

/* Before its first step the plan's prediction is shared out by what steps cost. */
Test(job_forecast, a_resumed_run_counts_only_the_remaining_steps)
{
    struct store_job job = nothing_known;
    job.step = 50;
    job.predicted_seconds = 625;
    job.predicted_low_seconds = 625;
    job.predicted_high_seconds = 625;
    cr_expect_float_eq(forecast_running(&job, &grows, 0).likely, 500, 1e-9);
}

/* Of an error that falls as 2 / sqrt(step): 90 % is met at step 400. */
static const struct forecast_eval falling[] = {
    {10,  1 - 0.632456, 1},
    {20,  1 - 0.447214, 2},
    {40,  1 - 0.316228, 3},
    {80,  1 - 0.223607, 4},
    {160, 1 - 0.158114, 5},
};

Test(target, is_predicted_from_the_evaluations_so_far)
{
    struct plan_band step;

    cr_assert(forecast_target_step(falling, 5, 0.9, &step));
    cr_expect_float_eq(step.value, 400, 0.5);
    cr_expect(step.low < 400 && step.low > 380, "low %g", step.low);
    cr_expect(step.high > 400 && step.high < 420, "high %g", step.high);
    cr_assert(forecast_target_step(falling, 3, 0.5, &step));
    cr_expect_eq(step.low, 40, "not before the newest evaluation");
}

Test(target, is_not_predicted_from_evaluations_without_a_trend)
{
    static const struct forecast_eval flat[] = {
        {10, 0.1, 1},
        {20, 0.1, 2},
        {30, 0.1, 3},
        {40, NAN, 4},
    };
    struct plan_band step;

    cr_expect_not(forecast_target_step(falling, 2, 0.9, &step), "two evaluations are no line");
    cr_expect_not(forecast_target_step(flat, 4, 0.9, &step), "it does not get better");
    cr_expect_not(forecast_target_step(falling, 5, 1, &step), "no error at all is never met");
    cr_expect_not(forecast_target_step(falling, 0, 0.5, &step));
}

Test(target, is_met_by_the_first_that_is_as_good)
{
    const struct forecast_eval *met = forecast_target_met(falling, 5, 0.7);

    cr_assert_not_null(met);
    cr_expect_eq(met->step, 80);
    cr_expect_null(forecast_target_met(falling, 5, 0.9));
}
