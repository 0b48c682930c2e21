#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/run/attempt.h"
#include "daemon/http/handlers/series.h"
#include "daemon/http/routes.h"

static int series_read_images(const struct request *q, struct images_by_step *seen, struct error *e)
{
    struct store_job job;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    int status = images_by_step_read(q->app->store, &job, seen, e);
    store_job_clear(&job);
    return status;
}

static int series_unknown_metric(const char *name, int length, struct error *e)
{
    char all[512] = "";

    for (size_t i = 0; event_metric_at(i); i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", event_metric_at(i)->name);
    }
    return error_set(e, ERR_USAGE, "unknown metric \"%.*s\"; the metrics are %s, and images",
                     length, name, all);
}

/* Sets bits of event_metric_at, all if no names are given; "images" sets *images. */
static int series_parse_names(const char *text, unsigned *wanted, bool *images, struct error *e)
{
    *wanted = 0;
    *images = !text;
    if (!text) {
        for (unsigned i = 0; event_metric_at(i); i++)
            *wanted |= 1u << i;
        return 0;
    }
    do {
        size_t length = strcspn(text, ","), i = 0;
        bool counts = length == strlen("images") && strncmp(text, "images", length) == 0;
        while (!counts && event_metric_at(i) &&
               (strlen(event_metric_at(i)->name) != length ||
                strncmp(event_metric_at(i)->name, text, length) != 0))
            i++;
        if (!event_metric_at(i))
            return series_unknown_metric(text, length > 64 ? 64 : (int)length, e);
        *images = *images || counts;
        *wanted |= counts ? 0 : 1u << i;
        text += length;
    } while (*text++ == ',');
    return 0;
}

#define PARTS_MIN 1000 /* few points are computed from many parts, for even spacing */

/* Reads exact rows if they fit, otherwise coarser buckets. */
static int series_fill(const struct request *q, struct series *series,
                       const struct series_shape *shape, int64_t from, struct error *e)
{
    struct store *store = q->app->store;

    if (shape->exact)
        return store_metric_each(store, q->id, from, shape->points, series_add, series, e);
    int status = store_metric_each(store, q->id, shape->first_step, 1, series_add, series, e);
    if (status == 0)
        status = store_metric_parts(store, q->id, shape->first_step + 1, shape->last_step + 1,
                                    shape->points > PARTS_MIN ? shape->points : PARTS_MIN,
                                    series_add, series, e);
    series_end(series);
    return status;
}

static int series_reply(const struct request *q, const struct series *series,
                        const struct images_by_step *seen, bool more, bool csv, struct reply *r,
                        struct error *e)
{
    if (csv) {
        size_t bytes;
        char *text = series_to_csv(series, seen, &bytes);
        int status = text ? reply_text(r, 200, "text/csv; charset=utf-8", text, bytes, e)
                          : error_set(e, ERR_NO_MEMORY, "out of memory for the series");
        free(text);
        if (status == 0 && more)
            reply_header(r, "X-Metrics-Next", "%lld", (long long)series_next(series));
        return status;
    }
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    json_text_integer(&text, "job", q->id);
    json_text_positive(&text, "next", more ? series_next(series) : 0);
    series_members(&text, series, seen);
    json_text_close(&text, '}');
    return reply_json_text(r, 200, &text, e);
}

int handle_metrics(const struct request *q, struct reply *r, struct error *e)
{
    struct store_metric_ends ends;
    struct series_shape shape;
    int64_t from, to, points;
    bool csv;
    struct images_by_step seen;

    if (series_parse_names(request_query(q, "names"), &shape.wanted, &shape.images, e) ||
        request_query_csv(q, &csv, e) || request_query_int(q, "from", 0, INT64_MAX, 0, &from, e) ||
        request_query_int(q, "to", 0, INT64_MAX, INT64_MAX, &to, e) ||
        request_query_int(q, "points", 2, SERIES_POINTS_MAX, 0, &points, e) ||
        series_read_images(q, &seen, e))
        return -(int)e->code;
    shape.points = points ? points : SERIES_POINTS_MAX;
    if (store_metric_ends(q->app->store, q->id, from, to, shape.points, &ends, e)) {
        images_by_step_clear(&seen);
        return -(int)e->code;
    }
    bool more = ends.rows > shape.points;
    shape.exact = !points || !more;
    shape.first_step = ends.first_step;
    shape.last_step = ends.last_step;
    if (!more)
        shape.points = ends.rows;
    struct series *series = series_create(&shape);
    int status = series ? series_fill(q, series, &shape, from, e)
                        : error_set(e, ERR_NO_MEMORY, "out of memory for the series");
    if (status == 0)
        status = series_reply(q, series, &seen, more && shape.exact, csv, r, e);
    series_destroy(series);
    images_by_step_clear(&seen);
    return status;
}

int handle_evals(const struct request *q, struct reply *r, struct error *e)
{
    struct images_by_step seen;
    json_t *evals, *one;
    size_t i;

    if (series_read_images(q, &seen, e))
        return -(int)e->code;
    if (store_eval_list(q->app->store, q->id, &evals, e)) {
        images_by_step_clear(&seen);
        return -(int)e->code;
    }
    json_array_foreach (evals, i, one) {
        int64_t images = images_by_step_at(&seen, json_get_integer(one, "step", 0));
        json_object_set_new(one, "images_seen", json_integer_or_null(images >= 0, images));
    }
    images_by_step_clear(&seen);
    return reply_json(r, 200, json_pack("{s:I, s:o}", "job", (json_int_t)q->id, "evals", evals), e);
}
