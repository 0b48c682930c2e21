#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/run/attempt.h"
#include "daemon/http/routes.h"
#include "daemon/http/stream/stream.h"
#include "daemon/store/event.h"

static bool events_wants_stream(const struct request *q)
{
    return q->accept && strstr(q->accept, "text/event-stream");
}

/* When a client reconnects, Last-Event-ID is newer than the URL. */
static int events_start_id(const struct request *q, int64_t otherwise, int64_t *after,
                           struct error *e)
{
    char *end;

    if (!q->last_event_id)
        return request_query_int(q, "after", 0, INT64_MAX, otherwise, after, e);
    errno = 0;
    *after = strtoll(q->last_event_id, &end, 10);
    if (errno || end == q->last_event_id || *end || *after < 0)
        return error_set(e, ERR_USAGE,
                         "the header Last-Event-ID must be the id of an event, a whole number, not "
                         "\"%.40s\"",
                         q->last_event_id);
    return 0;
}

static int events_stream(const struct request *q, int64_t job_id, struct reply *r, struct error *e)
{
    struct stream_request request = {.client = q->client, .token = q->token, .job_id = job_id};
    int64_t from = job_id == STORE_ALL_JOBS ? STREAM_FROM_NOW : 0;

    if (request_query(q, "limit") || request_query(q, "types"))
        return error_set(e, ERR_USAGE,
                         "limit and types apply to JSON pages, not to an event stream");
    if (events_start_id(q, from, &request.after, e))
        return -(int)e->code;
    int status = stream_open(q->app->streams, &request, &r->stream, e);
    if (status == -(int)ERR_TOO_MANY)
        reply_header(r, "Retry-After", "10");
    if (status)
        return status;
    r->status = 200;
    r->type = "text/event-stream";
    reply_header(r, "X-Accel-Buffering", "no"); /* makes nginx forward events immediately */
    return 0;
}

/* types: comma-separated names. */
static int events_check_types(const char *types, struct error *e)
{
    char names[256] = "";

    for (size_t i = 0, used = 0; event_kind_at(i); i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 event_kind_at(i));
    while (types) {
        size_t i = 0, length = strcspn(types, ",");
        while (event_kind_at(i) && (strlen(event_kind_at(i)) != length ||
                                    strncmp(event_kind_at(i), types, length) != 0))
            i++;
        if (!event_kind_at(i))
            return error_set(e, ERR_USAGE, "types must be some of %s, not \"%.*s\"", names,
                             length < 40 ? (int)length : 40, types);
        types = types[length] ? types + length + 1 : NULL;
    }
    return 0;
}

static int events_page(const struct request *q, int64_t job_id, struct reply *r, struct error *e)
{
    struct store_event_range range = {.job_id = job_id, .types = request_query(q, "types")};
    int64_t limit;
    json_t *events, *next = NULL;

    if (events_check_types(range.types, e) ||
        request_query_int(q, "after", 0, INT64_MAX, 0, &range.after, e) ||
        request_query_int(q, "limit", 1, 10000, 1000, &limit, e))
        return -(int)e->code;
    range.limit = limit + 1; /* one more, to find out whether there is another page */
    if (store_event_list(q->app->store, &range, &events, e))
        return -(int)e->code;
    if (json_array_size(events) > (size_t)limit) {
        json_array_remove(events, (size_t)limit);
        next = json_incref(json_object_get(json_array_get(events, (size_t)limit - 1), "id"));
    }
    json_t *json = json_pack("{s:o, s:o}", "events", events, "next", next ? next : json_null());
    if (job_id != STORE_ALL_JOBS)
        json_object_set_new(json, "job", json_integer(job_id));
    return reply_json(r, 200, json, e);
}

int handle_events(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    store_job_clear(&job);
    return events_wants_stream(q) ? events_stream(q, q->id, r, e) : events_page(q, q->id, r, e);
}

int handle_all_events(const struct request *q, struct reply *r, struct error *e)
{
    return events_wants_stream(q) ? events_stream(q, STORE_ALL_JOBS, r, e)
                                  : events_page(q, STORE_ALL_JOBS, r, e);
}

#define POINTS_MAX 1000 /* each with up to 64 ranks (worker/watch/straggler.c) */

struct ranks {
    json_t *step, *epoch, *t, *busy; /* arrays of the same length */
    size_t world;                    /* of the newest step */
};

static json_t *events_value_or_null(json_t *body, const char *key)
{
    json_t *value = json_object_get(body, key);
    return value ? json_incref(value) : json_null();
}

static bool events_add_ranks(void *context, const struct store_event_row *row)
{
    struct ranks *ranks = context;
    json_t *body = json_loads(row->body, 0, NULL), *busy = json_object_get(body, "rank_busy_ms");

    if (json_array_size(busy) > 0) {
        json_array_append_new(ranks->step, events_value_or_null(body, "step"));
        json_array_append_new(ranks->epoch, events_value_or_null(body, "epoch"));
        json_array_append_new(ranks->t, json_number(row->t));
        json_array_append(ranks->busy, busy);
        ranks->world = json_array_size(busy);
    }
    json_decref(body);
    return true;
}

int handle_ranks(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;
    int64_t points;

    if (request_query_int(q, "points", 1, POINTS_MAX, 200, &points, e) ||
        store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    store_job_clear(&job);
    struct ranks ranks = {json_array(), json_array(), json_array(), json_array(), 0};
    int status =
        store_event_steps_spread(q->app->store, q->id, points, events_add_ranks, &ranks, e);
    json_t *json = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "job", (json_int_t)q->id, "world",
                             (json_int_t)ranks.world, "step", ranks.step, "epoch", ranks.epoch, "t",
                             ranks.t, "rank_busy_ms", ranks.busy);
    if (status) {
        json_decref(json);
        return status;
    }
    return reply_json(r, 200, json, e);
}
