#include "daemon/job/job_target.h"

#include <math.h>

#define EVALS_MOST  8 /* that the line is laid through, the newest */
#define EVALS_LEAST 3
#define SCATTER_MIN 0.01  /* of log(error): an evaluation of some thousand images is no better */
#define SLOPE_LEAST -0.01 /* flatter than this is no progress */

const struct target_eval *target_met(const struct target_eval *evals, size_t count, double target)
{
    for (size_t i = 0; i < count; i++)
        if (evals[i].top1 >= target)
            return &evals[i];
    return NULL;
}

struct line {
    double x[EVALS_MOST], y[EVALS_MOST]; /* log(step), log(error) */
    size_t count;
    double last_step;
    double mean_x, mean_y, slope, scatter;
};

/* The newest evaluations that have a logarithm, newest first. */
static void target_line_points(struct line *l, const struct target_eval *evals, size_t count)
{
    for (size_t i = count; i-- > 0 && l->count < EVALS_MOST;) {
        const struct target_eval *one = &evals[i];
        if (!(one->step > 0 && one->top1 < 1))
            continue;
        l->last_step = fmax(l->last_step, one->step);
        l->x[l->count] = log(one->step);
        l->y[l->count++] = log(1 - one->top1);
    }
}

/* Least squares. */
static void target_line_fit(struct line *l)
{
    double sxx = 0, sxy = 0, left = 0, n = (double)l->count;

    for (size_t i = 0; i < l->count; i++) {
        l->mean_x += l->x[i] / n;
        l->mean_y += l->y[i] / n;
    }
    for (size_t i = 0; i < l->count; i++) {
        sxx += (l->x[i] - l->mean_x) * (l->x[i] - l->mean_x);
        sxy += (l->x[i] - l->mean_x) * (l->y[i] - l->mean_y);
    }
    l->slope = sxy / sxx;
    for (size_t i = 0; i < l->count; i++) {
        double off = l->y[i] - l->mean_y - l->slope * (l->x[i] - l->mean_x);
        left += off * off;
    }
    l->scatter = sqrt(left / fmax(1, n - 2));
}

/* Where the line, shifted up by so much, crosses the target's error. */
static double target_line_crossing(const struct line *l, double target, double shift)
{
    double step = exp(l->mean_x + (log(1 - target) - l->mean_y - shift) / l->slope);

    return fmax(l->last_step, step);
}

bool target_step(const struct target_eval *evals, size_t count, double target,
                 struct plan_band *step)
{
    struct line l = {0};

    target_line_points(&l, evals, count);
    if (l.count < EVALS_LEAST || target >= 1)
        return false;
    target_line_fit(&l);
    if (!(l.slope < SLOPE_LEAST))
        return false;
    double band = 2 * fmax(l.scatter, SCATTER_MIN);
    step->value = target_line_crossing(&l, target, 0);
    step->low = target_line_crossing(&l, target, -band);
    step->high = target_line_crossing(&l, target, band);
    return isfinite(step->value) && isfinite(step->high);
}
