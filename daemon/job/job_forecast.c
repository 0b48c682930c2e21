#include "daemon/job/job_forecast.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A measured speed is assumed correct to about a fifth, because it excludes checkpoints and other
 * jobs come and go; the length of an evaluation, estimated from that speed, to about a half. */
#define SOONER      0.8
#define LATER       1.25
#define LATER_EVAL  2.0
#define SOONER_EVAL 0.5

bool forecast_chains(const struct store_job *job)
{
    return job->launcher && strcmp(job->launcher, "slurm") == 0;
}

static const struct forecast_end unknown = {0, INFINITY, INFINITY};

static void forecast_limit(struct forecast_end *end, double seconds)
{
    if (isnan(seconds))
        return;
    end->latest = fmin(end->latest, fmax(0, seconds));
    if (end->likely > end->latest && isfinite(end->likely))
        end->likely = end->latest;
    end->soonest = fmin(end->soonest, end->latest);
}

struct forecast_end forecast_queued(const struct store_job *job)
{
    struct forecast_end end = unknown;

    if (job->predicted_seconds > 0)
        end = (struct forecast_end){job->predicted_low_seconds, job->predicted_seconds,
                                    job->predicted_high_seconds};
    forecast_limit(&end, job->time_limit_seconds);
    return end;
}

double forecast_steps(const struct forecast_pace *pace, double from, double to)
{
    double sum = 0;

    if (pace->count == 0)
        return fmax(0, to - from);
    for (size_t i = 0; i < pace->count; i++) {
        const struct forecast_part *part = &pace->parts[i];
        double first = fmax(from, (double)part->step);
        double end = i + 1 < pace->count ? fmin(to, (double)part[1].step) : to;
        sum += fmax(0, end - first) * part->images * part->cost;
    }
    return sum;
}

/* Returns seconds per image of the largest size, from the speed of the newest step. */
static double forecast_image_seconds(const struct store_job *job, const struct forecast_pace *pace)
{
    size_t i = pace->count;

    while (i > 1 && pace->parts[i - 1].step > job->step - 1)
        i--;
    return 1 / (job->images_per_sec * (i ? pace->parts[i - 1].cost : 1));
}

struct forecast_end forecast_until(const struct store_job *job, const struct forecast_pace *pace,
                                   double step)
{
    if (!(job->step > 0 && job->global_batch > 0 && job->images_per_sec > 0))
        return unknown;
    double image = forecast_image_seconds(job, pace);
    double interval = /* steps between evaluations */
        job->evaluations > 0 ? (double)job->train_steps / (double)job->evaluations : INFINITY;
    double train =
        forecast_steps(pace, (double)job->step, step) * (double)job->global_batch * image;
    double evaluation = (double)job->images_per_eval * PREDICT_EVAL_COST * image *
                        (pace->evaluation > 0 ? pace->evaluation : 1);
    double whole =
        fmax(0, floor(step / interval + 1e-9) - floor((double)job->step / interval + 1e-9));
    bool under_way = /* its progress is unknown */
        job->evaluations > 0 && (job->state == JOB_EVALUATING || step <= (double)job->step);
    return (struct forecast_end){
        SOONER * train + SOONER_EVAL * whole * evaluation,
        train + (whole + under_way * 0.5) * evaluation,
        LATER * train + LATER_EVAL * (whole + under_way) * evaluation,
    };
}

struct forecast_end forecast_running(const struct store_job *job, const struct forecast_pace *pace,
                                     double elapsed)
{
    struct forecast_end end = unknown;
    double steps = (double)job->train_steps;
    double left =
        steps > 0 ? forecast_steps(pace, (double)job->step, steps) / forecast_steps(pace, 0, steps)
                  : 1;

    if (job->step > 0 && job->global_batch > 0 && job->images_per_sec > 0) {
        end = forecast_until(job, pace, steps);
        /* An evaluation of unknown length may follow the last step. */
        if (job->train_steps > 0 && job->step >= job->train_steps && job->evaluations == 0)
            end.latest = INFINITY;
    } else if (job->predicted_seconds > 0) {
        end = (struct forecast_end){fmax(0, left * job->predicted_low_seconds - elapsed),
                                    fmax(0, left * job->predicted_seconds - elapsed),
                                    fmax(0, left * job->predicted_high_seconds - elapsed)};
    }
    if (!forecast_chains(job))
        forecast_limit(&end, job->time_limit_seconds - elapsed);
    return end;
}

static int64_t forecast_free_slots(const struct forecast_span *spans, size_t count, int64_t total,
                                   double at)
{
    for (size_t i = 0; i < count; i++)
        if (spans[i].end > at)
            total -= spans[i].slots;
    return total;
}

double forecast_fit(const struct forecast_span *spans, size_t count, int64_t total, int64_t wanted,
                    double from, int *by)
{
    double best = INFINITY;

    if (by)
        *by = -1;
    if (forecast_free_slots(spans, count, total, from) >= wanted)
        return from;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].end <= from || spans[i].end >= best ||
            forecast_free_slots(spans, count, total, spans[i].end) < wanted)
            continue;
        best = spans[i].end;
        if (by)
            *by = (int)i;
    }
    return best;
}

void forecast_words(double seconds, char *text, size_t bytes)
{
    double minutes = round(seconds / 60);

    if (minutes < 1)
        snprintf(text, bytes, "in less than a minute");
    else if (minutes < 60)
        snprintf(text, bytes, "in about %.0f min", minutes);
    else if (minutes < 48 * 60)
        snprintf(text, bytes, "in about %.0f h %.0f min", floor(minutes / 60),
                 10 * floor(fmod(minutes, 60) / 10));
    else
        snprintf(text, bytes, "in about %.0f days", round(minutes / 1440));
}

#define EVALS_MAX 8 /* newest evaluations used for the fit */
#define EVALS_MIN 3
#define SCATTER_MIN                                                                                \
    0.01 /* of log(error): the sampling error of an evaluation on a few thousand images */
#define SLOPE_MAX -0.01 /* a flatter line means no progress */

const struct forecast_eval *forecast_target_met(const struct forecast_eval *evals, size_t count,
                                                double target)
{
    for (size_t i = 0; i < count; i++)
        if (evals[i].top1 >= target)
            return &evals[i];
    return NULL;
}

struct line {
    double x[EVALS_MAX], y[EVALS_MAX]; /* log(step), log(error) */
    size_t count;
    double last_step;
    double mean_x, mean_y, slope, scatter;
};

/* Collects the newest evaluations that have a logarithm, newest first. */
static void forecast_line_points(struct line *l, const struct forecast_eval *evals, size_t count)
{
    for (size_t i = count; i-- > 0 && l->count < EVALS_MAX;) {
        const struct forecast_eval *one = &evals[i];
        if (!(one->step > 0 && one->top1 < 1))
            continue;
        l->last_step = fmax(l->last_step, one->step);
        l->x[l->count] = log(one->step);
        l->y[l->count++] = log(1 - one->top1);
    }
}

static void forecast_line_fit(struct line *l)
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

/* Returns the step at which the line, moved up by `shift`, crosses the target's error. */
static double forecast_line_crossing(const struct line *l, double target, double shift)
{
    double step = exp(l->mean_x + (log(1 - target) - l->mean_y - shift) / l->slope);

    return fmax(l->last_step, step);
}

bool forecast_target_step(const struct forecast_eval *evals, size_t count, double target,
                          struct plan_band *step)
{
    struct line l = {0};

    forecast_line_points(&l, evals, count);
    if (l.count < EVALS_MIN || target >= 1)
        return false;
    forecast_line_fit(&l);
    if (!(l.slope < SLOPE_MAX))
        return false;
    double band = 2 * fmax(l.scatter, SCATTER_MIN);
    step->value = forecast_line_crossing(&l, target, 0);
    step->low = forecast_line_crossing(&l, target, -band);
    step->high = forecast_line_crossing(&l, target, band);
    return isfinite(step->value) && isfinite(step->high);
}
