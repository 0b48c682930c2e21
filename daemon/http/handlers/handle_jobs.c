#include <stdlib.h>

#include "common/job/job_options.h"
#include "common/json.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/run_dir_cleanup.h"
#include "daemon/job/resume_point.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/event.h"

static void job_add_position(struct json_text *t, const struct request *q,
                             const struct store_job *job)
{
    int64_t of = 0, position = 0;

    if (job->state == JOB_QUEUED && !job->slurm)
        position = job_queue_position(q->app->jobs, job->id, &of);
    json_text_positive(t, "queue_position", position);
    json_text_positive(t, "queue_length", position > 0 ? of : 0);
}

int handle_job_show(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;
    char *gradients;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    struct json_text text = JSON_TEXT;
    struct error why; /* reported by the routes for its files */
    int64_t checkpoint =
        run_dir_check(q->app->store, &job, &why) ? 0 : resume_point_newest_step(job.run_dir, &why);
    json_text_open(&text, NULL, '{');
    job_members(&text, q, &job);
    json_text_positive(&text, "checkpoint_step", checkpoint);
    job_add_position(&text, q, &job);
    json_t *target = job_estimate_target(q->app->store, &job);
    if (target)
        json_text_value(&text, "target", target);
    if (!store_gradients_of(q->app->store, &job, &gradients, &why) && gradients)
        json_text_raw(&text, "gradients", gradients);
    free(gradients);
    json_text_close(&text, '}');
    store_job_clear(&job);
    return reply_json_text(r, 200, &text, e);
}

int handle_job_cancel(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;

    if (auth_check_job(q, q->id, e) || job_cancel(q->app->jobs, q->id, request_by(q), e) ||
        store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    int status = job_state_is_final(job.state) ? 200 : 202;
    return reply_job(r, q, status, &job, e);
}

/* failed: *e has been filled. */
static int job_reply_changed(const struct request *q, bool failed, struct reply *r, struct error *e)
{
    struct store_job job;

    if (failed || store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    return reply_job(r, q, 200, &job, e);
}

int handle_job_hold(const struct request *q, struct reply *r, struct error *e)
{
    bool failed = auth_check_job(q, q->id, e) || job_hold(q->app->jobs, q->id, request_by(q), e);
    return job_reply_changed(q, failed, r, e);
}

int handle_job_release(const struct request *q, struct reply *r, struct error *e)
{
    bool failed = auth_check_job(q, q->id, e) || job_release(q->app->jobs, q->id, request_by(q), e);
    return job_reply_changed(q, failed, r, e);
}

/* Reads {"priority": 5}. */
static int job_read_priority(const struct request *q, int64_t *priority, struct error *e)
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
    bool failed = job_read_priority(q, &priority, e) || auth_check_job(q, q->id, e) ||
                  job_set_priority(q->app->jobs, q->id, priority, request_by(q), e);
    return job_reply_changed(q, failed, r, e);
}

int handle_job_remove(const struct request *q, struct reply *r, struct error *e)
{
    int status = auth_check_job(q, q->id, e);
    if (!status)
        status = job_remove(q->app->jobs, q->id, request_by(q), e);
    return status ? status : reply_json(r, 200, json_pack("{s:I}", "removed", q->id), e);
}
