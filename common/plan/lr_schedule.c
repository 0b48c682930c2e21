#include "common/plan/lr_schedule.h"

#include <math.h>
#include <stdlib.h>

#include "common/json.h"
#include "common/number.h"

double lr_peak(const struct job_spec *spec, int64_t global_batch)
{
    double ratio = (double)global_batch / (double)spec->lr.base_batch;

    if (spec->lr.scaling == JOB_SCALING_SQRT)
        ratio = sqrt(ratio);
    else if (spec->lr.scaling == JOB_SCALING_NONE)
        ratio = 1;
    return number_rounded(spec->lr.base * ratio * spec->lr.factor);
}

double lr_start(const struct job_spec *spec, double peak)
{
    if (spec->lr.has_start)
        return spec->lr.start;
    return spec->lr.base < peak ? spec->lr.base : peak;
}

static double lr_progress(const struct lr_schedule *lr, double step)
{
    int64_t length = lr->train_steps - lr->warmup_steps;
    double share = length > 0 ? (step - (double)lr->warmup_steps) / (double)length : 0;

    return share > 1 ? 1 : share;
}

static double lr_stepped(const struct lr_schedule *lr, double step)
{
    double rate = lr->peak;

    for (size_t i = 0; i < lr->milestone_count && step >= (double)lr->milestone_steps[i]; i++)
        rate *= lr->gamma;
    return rate;
}

static double lr_exponential(const struct lr_schedule *lr, double step)
{
    double times = (step - (double)lr->warmup_steps) / lr->decay_steps;

    return lr->peak * pow(lr->gamma, lr->staircase ? floor(times) : times);
}

static double lr_of_schedule(const struct lr_schedule *lr, double step)
{
    double range = lr->peak - lr->end;

    if (step < (double)lr->warmup_steps)
        return lr->start + (lr->peak - lr->start) * step / (double)lr->warmup_steps;
    switch (lr->decay) {
    case JOB_DECAY_POLY:
        return range * pow(1 - lr_progress(lr, step), lr->power) + lr->end;
    case JOB_DECAY_COSINE:
        return range * 0.5 * (1 + cos(M_PI * lr_progress(lr, step))) + lr->end;
    case JOB_DECAY_STEP:
        return lr_stepped(lr, step);
    case JOB_DECAY_EXPONENTIAL:
        return lr_exponential(lr, step);
    case JOB_DECAY_PLATEAU:
        return lr->peak * lr->scale;
    case JOB_DECAY_NONE:
        break;
    }
    return lr->peak;
}

double lr_at(const struct lr_schedule *lr, int64_t step)
{
    size_t i = lr->phase_count;

    if (i == 0)
        return lr_of_schedule(lr, (double)step);
    while (i > 1 && lr->phases[i - 1].step > step)
        i--;
    const struct lr_phase *p = &lr->phases[i - 1];
    return p->factor * lr_of_schedule(lr, p->at + (double)(step - p->step) * p->pace);
}

int64_t lr_run_steps(const struct lr_schedule *lr)
{
    return lr->phase_count ? lr->run_steps : lr->train_steps;
}

int64_t lr_step_at(const struct lr_schedule *lr, int64_t place)
{
    size_t i = lr->phase_count;

    if (i == 0)
        return place;
    while (i > 1 && lr->phases[i - 1].at > (double)place)
        i--;
    const struct lr_phase *p = &lr->phases[i - 1];
    return p->step + (int64_t)ceil(((double)place - p->at) / p->pace);
}

#define CURVE_STEPS 301 /* evenly distributed */
#define CURVE_MAX   (CURVE_STEPS + 1 + 2 * JOB_MILESTONES_MAX + 2 * (JOB_SIZES_MAX + 1))

static int lr_curve_order(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

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
