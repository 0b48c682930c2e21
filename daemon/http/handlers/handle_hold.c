/* What people change about a job that waits. */
#include "common/job/job_options.h"
#include "common/json.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"

/* The job as it is now, where the change was made; failed: with *e. */
static int hold_reply(const struct request *q, bool failed, struct reply *r, struct error *e)
{
    struct store_job job;

    if (failed || store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    return reply_job(r, q, 200, &job, e);
}

int handle_job_hold(const struct request *q, struct reply *r, struct error *e)
{
    bool failed = auth_check_job(q, q->id, e) || job_hold(q->app->jobs, q->id, request_by(q), e);
    return hold_reply(q, failed, r, e);
}

int handle_job_release(const struct request *q, struct reply *r, struct error *e)
{
    bool failed = auth_check_job(q, q->id, e) || job_release(q->app->jobs, q->id, request_by(q), e);
    return hold_reply(q, failed, r, e);
}

/* {"priority": 5}, in the range of the job document's key. */
static int hold_read_priority(const struct request *q, int64_t *priority, struct error *e)
{
    const struct job_option *option = job_option_find("/priority");
    json_t *body = json_document_parse(q->body, q->body_bytes, e);
    const json_t *value = json_object_get(body, "priority");

    if (!body)
        return -(int)e->code;
    double number = json_is_integer(value) ? (double)json_integer_value(value) : option->max + 1;
    bool alone = json_object_size(body) == 1;
    *priority = (int64_t)number;
    json_decref(body);
    if (alone && number >= option->min && number <= option->max)
        return 0;
    return error_set(e, ERR_INVALID,
                     "priority: must be a whole number from %.0f to %.0f, and the only key",
                     option->min, option->max);
}

int handle_job_priority(const struct request *q, struct reply *r, struct error *e)
{
    int64_t priority = 0;
    bool failed = hold_read_priority(q, &priority, e) || auth_check_job(q, q->id, e) ||
                  job_set_priority(q->app->jobs, q->id, priority, request_by(q), e);
    return hold_reply(q, failed, r, e);
}
