#include "daemon/job/forecast.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A measured speed is trusted to a fifth: evaluations and checkpoints come on top of it, and other
 * jobs come and go. */
#define SOONER 0.8
#define LATER  1.25

bool forecast_chains(const struct store_job *job)
{
    return job->launcher && strcmp(job->launcher, "slurm") == 0;
}

static const struct forecast_end unknown = {0, INFINITY, INFINITY};

static double at_least_0(double x)
{
    return x > 0 ? x : 0;
}

static void limit(struct forecast_end *end, double seconds)
{
    if (isnan(seconds))
        return;
    end->latest = fmin(end->latest, at_least_0(seconds));
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
    limit(&end, job->time_limit_seconds);
    return end;
}

struct forecast_end forecast_running(const struct store_job *job, double elapsed)
{
    struct forecast_end end = unknown;
    double images = (double)(job->train_steps - job->step) * (double)job->global_batch;

    if (job->state != JOB_STARTING && job->step > 0 && job->images_per_sec > 0 && images >= 0) {
        double left = images / job->images_per_sec;
        /* Behind the last step there is an evaluation still, of unknown length. */
        end = (struct forecast_end){SOONER * left, left, images > 0 ? LATER * left : INFINITY};
    } else if (job->predicted_seconds > 0) {
        end = (struct forecast_end){at_least_0(job->predicted_low_seconds - elapsed),
                                    at_least_0(job->predicted_seconds - elapsed),
                                    at_least_0(job->predicted_high_seconds - elapsed)};
    }
    if (!forecast_chains(job))
        limit(&end, job->time_limit_seconds - elapsed);
    return end;
}

static int64_t free_slots(const struct forecast_span *spans, size_t count, int64_t total, double at)
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
    if (free_slots(spans, count, total, from) >= wanted)
        return from;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].end <= from || spans[i].end >= best ||
            free_slots(spans, count, total, spans[i].end) < wanted)
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
