#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/job_state.h"
#include "daemon/http/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/job/measure.h"

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *time_or_null(double t)
{
    return t > 0 ? json_real(t) : json_null();
}

static json_t *text_or_null(const char *text)
{
    json_t *string = text ? json_string(text) : NULL;
    return string ? string : json_null();
}

static json_t *exit_or_null(int64_t value)
{
    return value == STORE_NO_EXIT ? json_null() : json_integer(value);
}

static void add_progress(json_t *json, const struct store_job *job)
{
    json_object_set_new(json, "step", json_integer(job->step));
    json_object_set_new(json, "train_steps", json_integer(job->train_steps));
    /* time left = (train_steps - step) * global_batch / images_per_sec */
    json_object_set_new(json, "global_batch",
                        job->global_batch > 0 ? json_integer(job->global_batch) : json_null());
    json_object_set_new(json, "epoch", real_or_null(job->epoch));
    json_object_set_new(json, "loss", real_or_null(job->loss));
    json_object_set_new(json, "lr", real_or_null(job->lr));
    json_object_set_new(json, "images_per_sec", real_or_null(job->images_per_sec));
    json_object_set_new(json, "ttt_seconds", real_or_null(job->ttt_seconds));
    json_object_set_new(json, "top1", real_or_null(job->top1));
    json_object_set_new(json, "top5", real_or_null(job->top5));
}

json_t *job_to_json(const struct store_job *job)
{
    json_t *json = json_object();

    json_object_set_new(json, "id", json_integer(job->id));
    json_object_set_new(json, "name", text_or_null(job->name));
    json_object_set_new(json, "state", json_string(job_state_name(job->state)));
    json_object_set_new(json, "reason", text_or_null(job->reason));
    json_object_set_new(json, "attempt", json_integer(job->attempt));
    json_object_set_new(json, "priority", json_integer(job->priority));
    json_object_set_new(json, "slots", json_integer(job->slots));
    json_object_set_new(json, "restarts", json_integer(job->restarts));
    json_object_set_new(json, "failure",
                        job->failure ? json_loads(job->failure, 0, NULL) : json_null());
    json_object_set_new(json, "estimated_start",
                        time_or_null(job->state == JOB_QUEUED ? job->estimated_start : 0));
    json_object_set_new(json, "created_at", time_or_null(job->created_at));
    json_object_set_new(json, "started_at", time_or_null(job->started_at));
    json_object_set_new(json, "finished_at", time_or_null(job->finished_at));
    add_progress(json, job);
    json_object_set_new(json, "time_left", measure_time_left(job, clock_now()));
    json_object_set_new(json, "forecast",
                        job->forecast ? json_loads(job->forecast, 0, NULL) : json_null());
    json_object_set_new(json, "exit_code", exit_or_null(job->exit_code));
    json_object_set_new(json, "exit_signal", exit_or_null(job->exit_signal));
    json_object_set_new(json, "run_dir", text_or_null(job->run_dir));
    if (job->spec)
        json_object_set_new(json, "spec", json_loads(job->spec, 0, NULL));
    if (job->plan)
        json_object_set_new(json, "plan", json_loads(job->plan, 0, NULL));
    return json;
}

/* ---------------------------------------------------------------- GET /v1/jobs */

static int parse_states(const char *text, unsigned *states, struct error *e)
{
    char name[32];

    *states = 0;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
                 text);
        enum job_state state = job_state_of(name);
        if (state == JOB_STATE_COUNT)
            return error_set(e, ERR_USAGE,
                             "there is no state \"%s\"; the states are queued, starting, running, "
                             "evaluating, succeeded, failed and cancelled",
                             name);
        *states |= 1u << state;
        text += length + (text[length] == ',');
    }
    return 0;
}

int handle_job_list(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job_filter filter = {.order = STORE_NEWEST_FIRST};
    struct store_jobs jobs;
    const char *states = request_query(q, "state");

    if (states && !*states)
        return error_set(e, ERR_USAGE, "state must name a state, as in state=queued,running");
    if (parse_states(states, &filter.states, e) ||
        request_query_int(q, "after", 1, INT64_MAX, 0, &filter.after, e) ||
        request_query_int(q, "limit", 1, 1000, 50, &filter.limit, e) ||
        store_job_list(q->app->store, &filter, &jobs, e))
        return -(int)e->code;
    json_t *list = json_array();
    for (size_t i = 0; i < jobs.count; i++)
        json_array_append_new(list, job_to_json(&jobs.items[i]));
    bool more = jobs.count == (size_t)filter.limit;
    json_t *next = more ? json_integer(jobs.items[jobs.count - 1].id) : json_null();
    store_jobs_clear(&jobs);
    return reply_json(r, 200, json_pack("{s:o, s:o}", "jobs", list, "next", next), e);
}

/* ---------------------------------------------------------------- GET /v1/jobs/ID, POST .../cancel
 */

int handle_job_show(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    json_t *json = job_to_json(&job);
    int64_t checkpoint = job_newest_checkpoint(job.run_dir);
    json_object_set_new(json, "checkpoint_step",
                        checkpoint > 0 ? json_integer(checkpoint) : json_null());
    store_job_clear(&job);
    return reply_json(r, 200, json, e);
}

int handle_job_cancel(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;

    if (job_cancel(q->app->jobs, q->id, e) || store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    int status = job_state_is_final(job.state) ? 200 : 202;
    json_t *json = job_to_json(&job);
    store_job_clear(&job);
    return reply_json(r, status, json, e);
}
