#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/event.h"
#include "daemon/http/routes.h"
#include "daemon/http/series.h"

static int check_job(const struct request *q, struct error *e)
{
    struct store_job job;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    store_job_clear(&job);
    return 0;
}

/* ---------------------------------------------------------------- metrics */

static int unknown_metric(const char *name, int length, struct error *e)
{
    char all[512] = "";

    for (size_t i = 0; event_metric_at(i); i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", event_metric_at(i)->name);
    }
    return error_set(e, ERR_USAGE, "there is no metric \"%.*s\"; the metrics are %s", length, name,
                     all);
}

/* "loss,lr" to bits of event_metric_at; all of them where no names are given. */
static int parse_names(const char *text, unsigned *wanted, struct error *e)
{
    *wanted = 0;
    if (!text) {
        for (unsigned i = 0; event_metric_at(i); i++)
            *wanted |= 1u << i;
        return 0;
    }
    do {
        size_t length = strcspn(text, ","), i = 0;
        for (; event_metric_at(i); i++)
            if (strlen(event_metric_at(i)->name) == length &&
                strncmp(event_metric_at(i)->name, text, length) == 0)
                break;
        if (!event_metric_at(i))
            return unknown_metric(text, length > 64 ? 64 : (int)length, e);
        *wanted |= 1u << i;
        text += length;
    } while (*text++ == ',');
    return 0;
}

int handle_metrics(const struct request *q, struct reply *r, struct error *e)
{
    unsigned wanted;
    int64_t from, points, rows;

    if (parse_names(request_query(q, "names"), &wanted, e) ||
        request_query_int(q, "from", 0, INT64_MAX, 0, &from, e) ||
        request_query_int(q, "points", 2, SERIES_POINTS_MAX, 0, &points, e) || check_job(q, e) ||
        store_metric_count(q->app->store, q->id, from, &rows, e))
        return -(int)e->code;
    int64_t taken = points || rows < SERIES_POINTS_MAX ? rows : SERIES_POINTS_MAX;
    struct series *series = series_create(wanted, taken, points ? points : taken);
    if (!series)
        return error_set(e, ERR_NO_MEMORY, "no memory for the series");
    int status = store_metric_each(q->app->store, q->id, from, taken, series_add, series, e);
    if (status == 0) {
        json_t *json = series_to_json(series);
        json_object_set_new(json, "job", json_integer(q->id));
        json_object_set_new(json, "next",
                            taken < rows ? json_integer(series_next(series)) : json_null());
        status = reply_json(r, 200, json, e);
    }
    series_destroy(series);
    return status;
}

/* ---------------------------------------------------------------- evals */

int handle_evals(const struct request *q, struct reply *r, struct error *e)
{
    json_t *evals;

    if (check_job(q, e) || store_eval_list(q->app->store, q->id, &evals, e))
        return -(int)e->code;
    return reply_json(r, 200, json_pack("{s:I, s:o}", "job", (json_int_t)q->id, "evals", evals), e);
}
