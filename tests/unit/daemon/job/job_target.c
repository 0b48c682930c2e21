#include "daemon/job/job_target.h"

#include <criterion/criterion.h>
#include <math.h>

/* Of an error that falls as 2 / sqrt(step): 90 % is met at step 400. */
static const struct target_eval falling[] = {
    {10,  1 - 0.632456, 1},
    {20,  1 - 0.447214, 2},
    {40,  1 - 0.316228, 3},
    {80,  1 - 0.223607, 4},
    {160, 1 - 0.158114, 5},
};

Test(target, is_foretold_by_the_evaluations_so_far)
{
    struct plan_band step;

    cr_assert(target_step(falling, 5, 0.9, &step));
    cr_expect_float_eq(step.value, 400, 0.5);
    cr_expect(step.low < 400 && step.low > 380, "low %g", step.low);
    cr_expect(step.high > 400 && step.high < 420, "high %g", step.high);
    cr_assert(target_step(falling, 3, 0.5, &step));
    cr_expect_eq(step.low, 40, "not before the newest evaluation");
}

Test(target, is_not_foretold_of_what_tells_nothing)
{
    static const struct target_eval flat[] = {
        {10, 0.1, 1},
        {20, 0.1, 2},
        {30, 0.1, 3},
        {40, NAN, 4},
    };
    struct plan_band step;

    cr_expect_not(target_step(falling, 2, 0.9, &step), "two evaluations are no line");
    cr_expect_not(target_step(flat, 4, 0.9, &step), "it does not get better");
    cr_expect_not(target_step(falling, 5, 1, &step), "no error at all is never met");
    cr_expect_not(target_step(falling, 0, 0.5, &step));
}

Test(target, is_met_by_the_first_that_is_as_good)
{
    const struct target_eval *met = target_met(falling, 5, 0.7);

    cr_assert_not_null(met);
    cr_expect_eq(met->step, 80);
    cr_expect_null(target_met(falling, 5, 0.9));
}
