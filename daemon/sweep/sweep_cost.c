#include "daemon/sweep/sweep_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "common/xalloc.h"

enum end { LOW, VALUE, HIGH };

static double sweep_cost_end_of(const struct plan_band *band, enum end end)
{
    return end == LOW ? band->low : end == HIGH ? band->high : band->value;
}

static double sweep_cost_sum_of(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* An amount of each of the rung's jobs into out (room for all points); false: one is not known. */
static bool sweep_cost_fill_jobs(const struct sweep_cost *points, size_t count,
                                 const struct sweep_rung *r, enum sweep_amount amount, enum end end,
                                 double *out)
{
    size_t jobs = (size_t)r->jobs;

    for (size_t i = 0; i < count; i++) {
        out[i] = sweep_cost_end_of(&points[i].of[amount], end);
        if (isnan(out[i]))
            return false;
    }
    if (end == VALUE && jobs < count) {
        double mean = sweep_cost_sum_of(out, count) / (double)count;
        for (size_t i = 0; i < jobs; i++)
            out[i] = mean;
    } else if (end != VALUE && (jobs < count || end == LOW)) {
        number_sort(out, count);
        if (end == HIGH)
            memmove(out, out + count - jobs, jobs * sizeof *out);
    }
    for (size_t i = (size_t)r->whole; end == LOW && i < jobs; i++)
        out[i] *= r->from; /* the dearest are those that are stopped */
    return true;
}

/* When the last of these jobs ends, each on the first of the places to become free. */
static double sweep_cost_last_end(const double *seconds, size_t count, int64_t together)
{
    size_t places = together < (int64_t)count ? (size_t)together : count;
    double *until = xcalloc(places, sizeof *until), last = 0;

    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        for (size_t p = 1; p < places; p++)
            if (until[p] < until[first])
                first = p;
        until[first] += seconds[i];
        last = fmax(last, until[first]);
    }
    free(until);
    return last;
}

void sweep_rung_cost(const struct sweep_cost *points, size_t count, const struct sweep_rung *r,
                     struct sweep_cost *sum, struct plan_band *elapsed)
{
    double *jobs = xcalloc(count + 1, sizeof *jobs), total[HIGH + 1], last[HIGH + 1];

    for (int amount = 0; amount < SWEEP_AMOUNTS; amount++) {
        for (int end = LOW; end <= HIGH; end++) {
            bool known = sweep_cost_fill_jobs(points, count, r, (enum sweep_amount)amount,
                                              (enum end)end, jobs);
            total[end] = known ? sweep_cost_sum_of(jobs, (size_t)r->jobs) : NAN;
            if (amount == SWEEP_SECONDS)
                last[end] = known ? sweep_cost_last_end(jobs, (size_t)r->jobs, r->together) : NAN;
        }
        sum->of[amount] = (struct plan_band){total[VALUE], total[LOW], total[HIGH]};
    }
    /* In another order of jobs even shorter ones may end later. */
    *elapsed = (struct plan_band){last[VALUE], last[VALUE], last[VALUE]};
    if (last[LOW] < last[VALUE])
        elapsed->low = last[LOW];
    if (last[HIGH] > last[VALUE])
        elapsed->high = last[HIGH];
    free(jobs);
}
