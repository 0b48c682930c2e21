/* Each rank's time of a step, for a heat map: it is in the step events alone, not in a series. */
#include "common/json.h"
#include "daemon/http/routes.h"
#include "daemon/store/event.h"

#define POINTS_MAX 1000 /* of up to 64 ranks each (worker/watch/straggler.c) */

struct ranks {
    json_t *step, *epoch, *t, *busy; /* arrays of the same length */
    size_t world;                    /* of the newest step */
};

static json_t *handle_ranks_value_or_null(json_t *body, const char *key)
{
    json_t *value = json_object_get(body, key);
    return value ? json_incref(value) : json_null();
}

static bool ranks_add_event(void *context, const struct store_event_row *row)
{
    struct ranks *ranks = context;
    json_t *body = json_loads(row->body, 0, NULL), *busy = json_object_get(body, "rank_busy_ms");

    if (json_array_size(busy) > 0) {
        json_array_append_new(ranks->step, handle_ranks_value_or_null(body, "step"));
        json_array_append_new(ranks->epoch, handle_ranks_value_or_null(body, "epoch"));
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
    int status = store_event_steps_spread(q->app->store, q->id, points, ranks_add_event, &ranks, e);
    json_t *json = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "job", (json_int_t)q->id, "world",
                             (json_int_t)ranks.world, "step", ranks.step, "epoch", ranks.epoch, "t",
                             ranks.t, "rank_busy_ms", ranks.busy);
    if (status) {
        json_decref(json);
        return status;
    }
    return reply_json(r, 200, json, e);
}
