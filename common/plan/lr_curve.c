#include "common/json.h"
#include "common/plan/lr_curve.h"

#include <stdlib.h>

#include "common/number.h"

#define CURVE_STEPS 301 /* evenly spread */
#define CURVE_MAX   (CURVE_STEPS + 1 + 2 * JOB_MILESTONES_MAX + 2 * (JOB_SIZES_MAX + 1))

static int lr_curve_order(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Steps that are drawn, rising, some of them twice. */
static size_t lr_curve_steps(const struct lr_schedule *s, int64_t steps[CURVE_MAX])
{
    size_t count = 0;

    for (int64_t i = 0; i < CURVE_STEPS; i++)
        steps[count++] =
            (int64_t)((double)i * (double)(lr_run_steps(s) - 1) / (CURVE_STEPS - 1) + 0.5);
    steps[count++] = lr_step_at(s, s->warmup_steps);
    for (size_t i = 0; i < s->milestone_count; i++) {
        steps[count++] = lr_step_at(s, s->milestone_steps[i]) - 1;
        steps[count++] = lr_step_at(s, s->milestone_steps[i]);
    }
    for (size_t i = 1; i < s->phase_count; i++) {
        steps[count++] = s->phases[i].step - 1;
        steps[count++] = s->phases[i].step;
    }
    qsort(steps, count, sizeof *steps, lr_curve_order);
    return count;
}

json_t *lr_curve(const struct lr_schedule *s)
{
    int64_t steps[CURVE_MAX], last = -1;
    json_t *points = json_array();

    if (lr_run_steps(s) < 1)
        return points;
    size_t count = lr_curve_steps(s, steps);
    for (size_t i = 0; i < count; i++) {
        if (steps[i] <= last || steps[i] >= lr_run_steps(s))
            continue;
        last = steps[i];
        json_array_append_new(points, json_pack("[I, o]", (json_int_t)last,
                                                json_number(number_rounded(lr_at(s, last)))));
    }
    return points;
}
