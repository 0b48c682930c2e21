#include "common/json.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/access/job_policy.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/store/sweep.h"
#include "daemon/sweep/sweep.h"
#include "daemon/sweep/sweep_preview.h"

#define LIST_MAX 1000

static int sweeps_reply(const struct request *q, int64_t id, int status, struct reply *r,
                        struct error *e)
{
    struct store_sweep sweep;

    if (store_sweep_get(q->app->store, id, &sweep, e))
        return -(int)e->code;
    json_t *json = sweep_to_json(&sweep);
    store_sweep_clear(&sweep);
    return reply_json(r, status, json, e);
}

/* Applies the checks of submitted jobs to a sweep's jobs. */
static void sweeps_permit(const struct job_spec *spec, const void *context,
                          struct problems *problems)
{
    const struct request *q = context;

    job_policy_check(spec, q->config, (q->rights & RIGHT(ROLE_ADMIN)) != 0, problems);
    if (problems->count == 0)
        job_policy_check_weights(spec, problems);
}

static int sweeps_create(const struct request *q, const struct sweep_new *new, struct reply *r,
                         struct error *e)
{
    struct problems problems = {0};
    int64_t id = 0;
    bool existed;
    int status = sweep_create(q->app->jobs, new, &problems, &id, &existed, e);

    if (!status && problems.count) {
        status = reply_refusal(r, ERR_INVALID, &problems);
    } else if (!status) {
        reply_header(r, "Location", "/v1/sweeps/%lld", (long long)id);
        status = sweeps_reply(q, id, existed ? 200 : 201, r, e);
    }
    problems_clear(&problems);
    return status;
}

static json_t *sweeps_document(const struct request *q, struct error *e)
{
    if (q->body_bytes > 0)
        return json_document_parse(q->body, q->body_bytes, e);
    error_set(e, ERR_USAGE,
              "send a sweep as the body: {\"base\": {...}, \"parameters\": {\"lr.base\": "
              "[0.1, 0.2]}}");
    return NULL;
}

int handle_sweep_plan(const struct request *q, struct reply *r, struct error *e)
{
    const struct plan_prices *prices = &q->config->prices;
    struct problems problems = {0};
    json_t *document = sweeps_document(q, e);

    if (!document)
        return -(int)e->code;
    const struct sweep_new new = {
        .document = document, .permit = {sweeps_permit, q}
    };
    json_t *preview = sweep_preview(q->app->jobs, &new, prices, &problems, e);
    int status = preview          ? reply_json(r, 200, preview, e)
                 : problems.count ? reply_refusal(r, ERR_INVALID, &problems)
                                  : -(int)e->code;
    json_decref(document);
    problems_clear(&problems);
    return status;
}

int handle_sweep_create(const struct request *q, struct reply *r, struct error *e)
{
    char digest[DIGEST_BYTES];
    json_t *document;

    if ((q->body_bytes > 0 && request_key(q, digest, e)) || !(document = sweeps_document(q, e)))
        return -(int)e->code;
    const struct sweep_new new = {
        document, {sweeps_permit, q            },
         { q->idempotency_key,       digest, request_by(q)}
    };
    int status = sweeps_create(q, &new, r, e);
    json_decref(document);
    return status;
}

static json_t *sweeps_summary(const struct store_sweep *sweep)
{
    json_t *one = sweep_to_json(sweep);

    json_object_set(one, "metric", json_object_get(json_object_get(one, "document"), "metric"));
    json_object_del(one, "trials");
    json_object_del(one, "document");
    json_object_set_new(one, "trial_count", json_integer((json_int_t)sweep->count));
    return one;
}

int handle_sweep_list(const struct request *q, struct reply *r, struct error *e)
{
    int64_t ids[LIST_MAX + 1], limit, after;
    json_t *list;
    size_t count = 0;

    if (request_query_int(q, "limit", 1, LIST_MAX, 50, &limit, e) ||
        request_query_int(q, "after", 1, INT64_MAX, 0, &after, e) ||
        store_sweep_ids(q->app->store, false, after, ids, (size_t)limit + 1, &count, e))
        return -(int)e->code;
    bool more = count > (size_t)limit;
    list = json_array();
    for (size_t i = 0; i < count - more; i++) {
        struct store_sweep sweep;
        if (store_sweep_get(q->app->store, ids[i], &sweep, e)) {
            json_decref(list);
            return -(int)e->code;
        }
        json_array_append_new(list, sweeps_summary(&sweep));
        store_sweep_clear(&sweep);
    }
    json_t *next = more ? json_integer(ids[limit - 1]) : json_null();
    return reply_json(r, 200, json_pack("{s:o, s:o}", "sweeps", list, "next", next), e);
}

int handle_sweep_show(const struct request *q, struct reply *r, struct error *e)
{
    return sweeps_reply(q, q->id, 200, r, e);
}

int handle_sweep_cancel(const struct request *q, struct reply *r, struct error *e)
{
    int status = auth_check_sweep(q, q->id, e);
    if (!status)
        status = sweep_cancel(q->app->jobs, q->id, request_by(q), e);
    return status ? status : sweeps_reply(q, q->id, 200, r, e);
}
