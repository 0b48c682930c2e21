/* Images per second of all jobs over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "common/run/attempt.h"
#include "daemon/http/routes.h"
#include "daemon/store/metric.h"

#define JOBS_MOST                                                                                  \
    1000 /* newest jobs to look at; older ones have hardly been training in the last days */
#define PARTS_LEAST                                                                                \
    200 /* per job in this period, so that a run of weeks is not condensed as a whole */
#define POINTS_DEFAULT  120
#define SECONDS_DEFAULT 3600
#define SECONDS_MAX     (30 * 86400)

/* Bin i is [from + i * width, from + (i + 1) * width), Unix seconds. */
struct bins {
    double from, width;
    size_t count;
    double *images;
    int64_t global_batch; /* of the job being added */
    size_t step_ms;       /* index in event_metric_at */
};

/* Distributes the images of a part evenly over its duration. */
static void throughput_bins_add_part(void *context, const struct store_metric_part *part)
{
    struct bins *b = context;
    double seconds = part->of[b->step_ms].sum / 1e3;
    double end = part->t, begin = end - seconds;

    if (!(seconds > 0) || end <= b->from)
        return;
    double images_per_sec = (double)(part->rows * b->global_batch) / seconds;
    double first = floor((begin - b->from) / b->width);
    for (size_t i = first > 0 ? (size_t)first : 0; i < b->count; i++) {
        double low = b->from + (double)i * b->width, high = low + b->width;
        if (low >= end)
            break;
        b->images[i] += images_per_sec * (fmin(high, end) - fmax(low, begin));
    }
}

static int throughput_bins_add_job(struct store *s, const struct store_trained *job, struct bins *b,
                                   struct error *e)
{
    struct store_metric_ends ends;
    int status = store_metric_ends_since(s, job->id, b->from, &ends, e);

    if (status || ends.rows == 0)
        return status;
    b->global_batch = job->global_batch;
    return store_metric_parts(s, job->id, ends.first_step, ends.last_step + 1,
                              (int64_t)fmax(PARTS_LEAST, (double)b->count),
                              throughput_bins_add_part, b, e);
}

static int throughput_bins_fill(struct store *s, struct bins *b, struct error *e)
{
    size_t count;
    struct store_trained *jobs = xcalloc(JOBS_MOST, sizeof *jobs);

    for (size_t i = 0; event_metric_at(i); i++)
        if (strcmp(event_metric_at(i)->name, "step_ms") == 0)
            b->step_ms = i;
    int status = store_jobs_trained_since(s, b->from, JOBS_MOST, jobs, &count, e);
    for (size_t i = 0; status == 0 && i < count; i++)
        status = throughput_bins_add_job(s, &jobs[i], b, e);
    free(jobs);
    return status;
}

/* The last bin covers only the seconds so far. */
static json_t *throughput_bins_to_json(const struct bins *b, double now)
{
    json_t *t = json_array(), *rates = json_array();

    for (size_t i = 0; i < b->count; i++) {
        double begin = b->from + (double)i * b->width;
        double seconds = fmin(b->width, now - begin);
        if (seconds <= 0)
            break;
        json_array_append_new(t, json_number(begin + seconds));
        json_array_append_new(rates, json_number(b->images[i] / seconds));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "from", json_number(b->from), "bin_seconds",
                     json_number(b->width), "t", t, "images_per_sec", rates);
}

int handle_throughput(const struct request *q, struct reply *r, struct error *e)
{
    int64_t seconds, points;

    if (request_query_int(q, "seconds", 60, SECONDS_MAX, SECONDS_DEFAULT, &seconds, e) ||
        request_query_int(q, "points", 2, 1000, POINTS_DEFAULT, &points, e))
        return -(int)e->code;
    double now = clock_now(), width = (double)seconds / (double)points;
    struct bins b = {.from = floor((now - (double)seconds) / width) *
                             width, /* aligned, so that bins do not move between requests */
                     .width = width,
                     .count = (size_t)points + 1,
                     .images = calloc((size_t)points + 1, sizeof *b.images)};
    if (!b.images)
        return error_set(e, ERR_NO_MEMORY, "out of memory for the series");
    int status = throughput_bins_fill(q->app->store, &b, e);
    if (status == 0)
        status = reply_json(r, 200, throughput_bins_to_json(&b, now), e);
    free(b.images);
    return status;
}
