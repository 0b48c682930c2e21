#include <math.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/job/job_state.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/job/job_cost.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/resume_point.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/event.h"

/* Where no evaluation was, best_top1_step is null too. */
static void job_add_best(struct json_text *t, const struct store_job *job)
{
    json_text_real(t, "best_top1", job->best_top1);
    json_text_known(t, "best_top1_step", !isnan(job->best_top1), job->best_top1_step);
    json_text_real(t, "best_top1_epoch", job->best_top1_epoch);
    json_text_time(t, "best_top1_at", job->best_top1_at);
}

static void job_add_progress(struct json_text *t, const struct store_job *job)
{
    bool evaluates = job->train_steps <= 0; /* a job that trains counts steps */

    json_text_integer(t, "step", job->step);
    json_text_integer(t, "train_steps", job->train_steps);
    json_text_known(t, "evaluated_images", evaluates, job->evaluated_images);
    json_text_known(t, "eval_images", evaluates, job->eval_images);
    /* time left = (train_steps - step) * global_batch / images_per_sec */
    json_text_positive(t, "global_batch", job->global_batch);
    json_text_real(t, "epoch", job->epoch);
    json_text_real(t, "loss", job->loss);
    json_text_real(t, "lr", job->lr);
    json_text_real(t, "images_per_sec", job->images_per_sec);
    json_text_real(t, "ttt_seconds", job->ttt_seconds);
    json_text_real(t, "top1", job->top1);
    json_text_real(t, "top5", job->top5);
    job_add_best(t, job);
}

static void job_add_bill(struct json_text *t, const struct request *q, const struct store_job *job)
{
    const struct plan_prices *prices = &q->config->prices;
    struct job_cost bill = job_cost_of(job, prices, clock_now());

    json_text_string(t, "energy_source", job_energy_source_name(bill.source));
    json_text_rounded(t, "joules", bill.joules);
    json_text_rounded(t, "joules_per_image", bill.joules_per_image);
    json_text_rounded(t, "kwh", bill.kwh);
    json_text_rounded(t, "node_hours", bill.node_hours);
    json_text_rounded(t, "cost", bill.cost);
    json_text_string(t, "currency", prices->currency);
}

void job_members(struct json_text *t, const struct request *q, const struct store_job *job)
{
    json_text_integer(t, "id", job->id);
    json_text_string(t, "name", job->name);
    json_text_string(t, "state", job_state_name(job->state));
    json_text_string(t, "reason", job->reason);
    json_text_string(t, "submitted_by", job->submitted_by);
    json_text_raw(t, "tags", job->tags);
    json_text_string(t, "note", job->note);
    json_text_integer(t, "attempt", job->attempt);
    json_text_integer(t, "priority", job->priority);
    json_text_integer(t, "slots", job->slots);
    json_text_integer(t, "restarts", job->restarts);
    json_text_raw(t, "failure", job->failure);
    json_text_string(t, "failure_label", job->failure_label);
    json_text_time(t, "estimated_start", job->state == JOB_QUEUED ? job->estimated_start : 0);
    json_text_time(t, "held_at", job->held_at);
    if (job->imported_from)
        json_text_raw(t, "imported_from", job->imported_from);
    json_text_time(t, "created_at", job->created_at);
    json_text_time(t, "started_at", job->started_at);
    json_text_time(t, "finished_at", job->finished_at);
    job_add_progress(t, job);
    json_text_value(t, "time_left", job_estimate_time_left(q->app->jobs, job, clock_now()));
    json_text_raw(t, "forecast", job->forecast);
    job_add_bill(t, q, job);
    if (job->slurm)
        json_text_raw(t, "slurm", job->slurm);
    json_text_known(t, "exit_code", job->exit_code != STORE_NO_EXIT, job->exit_code);
    json_text_known(t, "exit_signal", job->exit_signal != STORE_NO_EXIT, job->exit_signal);
    json_text_positive(t, "disk_bytes", job->disk_bytes);
    json_text_string(t, "run_dir", job->run_dir);
    if (job->spec)
        json_text_raw(t, "spec", job->spec);
    if (job->plan)
        json_text_raw(t, "plan", job->plan);
}

int reply_job(struct reply *r, const struct request *q, int status, struct store_job *job,
              struct error *e)
{
    struct json_text text = JSON_TEXT;

    json_text_open(&text, NULL, '{');
    job_members(&text, q, job);
    json_text_close(&text, '}');
    store_job_clear(job);
    return reply_json_text(r, status, &text, e);
}

/* ---------------------------------------------------------------- routes */

/* Its place in this machine's queue. */
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
    struct error why; /* the routes of its files tell it */
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
