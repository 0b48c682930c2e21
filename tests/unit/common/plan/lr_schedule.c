#include "common/job/job_document.h"
#include "common/plan/lr_schedule.h"

#include <math.h>

#include "tests/unit/common/job.h"

static struct lr_schedule bkm(enum job_decay decay)
{
    return (struct lr_schedule){
        .decay = decay,
        .start = 0.1,
        .peak = 4.8,
        .end = 0,
        .power = 1,
        .warmup_steps = 260,
        .train_steps = 4680,
        .gamma = 0.1,
        .milestone_steps = {1560, 3120, 4160},
        .milestone_count = 3
    };
}

static void near(const struct lr_schedule *lr, int64_t step, double expected)
{
    cr_assert_float_eq(lr_at(lr, step), expected, 1e-12, "step %lld: %.15g, not %.15g",
                       (long long)step, lr_at(lr, step), expected);
}

Test(lr_schedule, warms_up_in_a_straight_line)
{
    struct lr_schedule lr = bkm(JOB_DECAY_POLY);

    near(&lr, 0, 0.1);
    near(&lr, 130, 2.45);
    near(&lr, 259, 0.1 + 4.7 * 259 / 260);
    near(&lr, 260, 4.8);
}

Test(lr_schedule, poly_falls_to_the_end)
{
    struct lr_schedule lr = bkm(JOB_DECAY_POLY);

    near(&lr, 260 + 2210, 2.4); /* half way */
    near(&lr, 4679, 4.8 / 4420);
    lr.power = 2;
    lr.end = 0.3;
    near(&lr, 260 + 2210, 4.5 * 0.25 + 0.3);
}

Test(lr_schedule, cosine_falls_to_the_end)
{
    struct lr_schedule lr = bkm(JOB_DECAY_COSINE);

    near(&lr, 260, 4.8);
    near(&lr, 260 + 2210, 2.4);
    near(&lr, 260 + 1105, 2.4 * (1 + sqrt(0.5)));
    lr.end = 0.8;
    near(&lr, 260 + 2210, 2.8);
}

Test(lr_schedule, step_falls_at_its_milestones)
{
    struct lr_schedule lr = bkm(JOB_DECAY_STEP);

    near(&lr, 1559, 4.8);
    near(&lr, 1560, 0.48);
    near(&lr, 3120, 0.048);
    near(&lr, 4679, 0.0048);
    lr.milestone_count = 0;
    near(&lr, 4679, 4.8);
}

/* tf.train.exponential_decay(4.8, s - 260, 1560, 0.1), smooth and as a staircase */
Test(lr_schedule, exponential_falls_by_gamma_in_its_time)
{
    struct lr_schedule lr = bkm(JOB_DECAY_EXPONENTIAL);

    lr.decay_steps = 1560;
    near(&lr, 130, 2.45);
    near(&lr, 260, 4.8);
    near(&lr, 260 + 780, 4.8 * sqrt(0.1));
    near(&lr, 260 + 1560, 0.48);
    near(&lr, 260 + 3120, 0.048);
    lr.staircase = true;
    near(&lr, 260 + 1559, 4.8);
    near(&lr, 260 + 1560, 0.48);
    near(&lr, 260 + 3119, 0.48);
}

Test(lr_schedule, none_stays_at_the_peak)
{
    struct lr_schedule lr = bkm(JOB_DECAY_NONE);

    near(&lr, 4679, 4.8);
}

Test(lr_schedule, warm_up_as_long_as_the_run_or_longer_stays_finite)
{
    struct lr_schedule lr = bkm(JOB_DECAY_COSINE);

    lr.warmup_steps = 4680;
    near(&lr, 4679, 0.1 + 4.7 * 4679 / 4680);
    lr.warmup_steps = 9360;
    near(&lr, 4680, 2.45);
    lr.warmup_steps = lr.train_steps = 1;
    near(&lr, 0, 0.1);
    lr.warmup_steps = 0;
    near(&lr, 0, 4.8);
}

static double peak_of(const char *lr, int64_t batch)
{
    char text[256];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'lr': {%s}}", lr);
    struct job_spec *spec = job_of(text);
    double peak = lr_peak(spec, batch);
    job_spec_destroy(spec);
    return peak;
}

Test(lr_schedule, scaling_rules)
{
    cr_assert_eq(peak_of("'factor': 0.5", 24576), 4.8);
    cr_assert_eq(peak_of("'base': 0.1", 8192), 3.2);
    cr_assert_eq(peak_of("'base': 0.256", 1024), 1.024);
    cr_assert_eq(peak_of("'base': 0.01, 'base_batch': 32, 'scaling': 'sqrt'", 32 * 64), 0.08);
    cr_assert_eq(peak_of("'factor': 1}, 'optimizer': {'name': 'adam'", 1024), 0.002);
    cr_assert_eq(peak_of("'base': 17, 'scaling': 'none'", 8192), 17.0);
}

Test(lr_schedule, start_is_the_base_but_not_above_the_peak)
{
    struct job_spec *spec = job_of("{'data': {'train': 'x'}}");

    cr_assert_eq(lr_start(spec, 4.8), 0.1);
    cr_assert_eq(lr_start(spec, 0.05), 0.05);
    spec->lr.has_start = true;
    spec->lr.start = 0;
    cr_assert_eq(lr_start(spec, 4.8), 0.0);
    job_spec_destroy(spec);
}

static void check_curve(const struct lr_schedule *s)
{
    json_t *curve = lr_curve(s), *point;
    int64_t last = -1;
    bool milestones = s->milestone_count == 0;
    size_t i;

    json_array_foreach (curve, i, point) {
        int64_t step = json_integer_value(json_array_get(point, 0));
        cr_assert_gt(step, last);
        cr_assert_float_eq(json_number_value(json_array_get(point, 1)), lr_at(s, step), 1e-12);
        milestones |= s->milestone_count && step == s->milestone_steps[0];
        last = step;
    }
    cr_assert_eq(last, s->train_steps - 1);
    cr_assert(milestones);
    cr_assert_lt(json_array_size(curve), 400);
    json_decref(curve);
}

Test(lr_schedule, the_curve_has_the_rates_of_its_steps)
{
    struct lr_schedule s = {.decay = JOB_DECAY_EXPONENTIAL,
                            .start = 0.1,
                            .peak = 0.8,
                            .gamma = 0.94,
                            .decay_steps = 50,
                            .warmup_steps = 7,
                            .train_steps = 12345};

    check_curve(&s);
    s.staircase = true;
    check_curve(&s);
    s = (struct lr_schedule){
        .decay = JOB_DECAY_STEP,
        .peak = 0.8,
        .gamma = 0.1,
        .train_steps = 10000,
        .milestone_steps = {3333, 6666},
        .milestone_count = 2
    };
    check_curve(&s);
    s.train_steps = 7000;
    check_curve(&s);
}

Test(lr_schedule, the_curve_of_a_short_run_has_all_steps)
{
    struct lr_schedule s = {
        .decay = JOB_DECAY_COSINE, .peak = 1, .warmup_steps = 2, .train_steps = 5};
    json_t *curve = lr_curve(&s);

    cr_assert_eq(json_array_size(curve), 5);
    json_decref(curve);
    s.train_steps = 0;
    curve = lr_curve(&s);
    cr_assert_eq(json_array_size(curve), 0);
    json_decref(curve);
}
