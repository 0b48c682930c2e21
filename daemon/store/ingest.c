#include "daemon/store/ingest.h"

#include <math.h>
#include <stdlib.h>

#include "common/assert_always.h"
#include "common/json.h"
#include "daemon/store/attempt.h"
#include "daemon/store/confusion.h"
#include "daemon/store/event.h"
#include "daemon/store/metric.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

void store_step_clear(struct store_step *step)
{
    step->step = -1;
    step->epoch = NAN;
    for (size_t i = 0; i < EVENT_METRICS_MAX; i++)
        step->metrics[i] = NAN;
}

void store_step_of(const json_t *body, struct store_step *step)
{
    store_step_clear(step);
    step->step = json_get_integer(body, "step", -1);
    step->epoch = json_get_number(body, "epoch", NAN);
    for (size_t i = 0; event_metric_at(i); i++)
        step->metrics[i] = json_get_number(body, event_metric_at(i)->name, NAN);
}

/* Work done once per batch, after its last step. */
struct steps {
    int64_t first, last; /* lowest and highest step number */
    const struct store_step *newest;
};

static void ingest_note_step(struct steps *steps, const struct store_step *step)
{
    if (!steps->newest || step->step < steps->first)
        steps->first = step->step;
    if (!steps->newest || step->step > steps->last)
        steps->last = step->step;
    steps->newest = step;
}

static int ingest_finish_steps(struct sql *c, int64_t job_id, const struct steps *steps,
                               struct error *e)
{
    if (!steps->newest)
        return 0;
    const struct store_step *newest = steps->newest;
    int status = store_buckets_update(c, job_id, steps->first, steps->last, e);
    if (status)
        return status;
    return sql_run(c, e, NULL,
                   "update job set step = ?2, epoch = ?3, loss = ?4, lr = ?5, images_per_sec = ?6 "
                   "where id = ?1",
                   "iidddd", job_id, newest->step, newest->epoch, newest->metrics[0],
                   newest->metrics[1], newest->metrics[2]);
}

static int ingest_step(struct sql *c, int64_t job_id, const struct store_event *event,
                       struct steps *steps, struct error *e)
{
    const struct store_step *step = &event->step;
    const double *v = step->metrics;

    if (step->step < 0 || step->step > EVENT_STEP_MAX)
        return 0; /* stored as an event only: a step needs its number in a series */
    ingest_note_step(steps, step);
    return sql_run(c, e, NULL,
                   "insert or replace into step_metric (job_id, step, epoch, t, loss, lr, "
                   "images_per_sec, step_ms, data_ms, forward_ms, backward_ms, comm_ms, "
                   "optim_ms, grad_norm, slowest_rank, top1) "
                   "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "iidddddddddddddd", job_id, step->step, step->epoch, event->t, v[0], v[1], v[2],
                   v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]);
}

/* Returns 0 if it is missing or invalid. */
static int64_t ingest_step_number(const json_t *body, const char *key)
{
    int64_t step = json_get_integer(body, key, 0);

    return step < 0 || step > EVENT_STEP_MAX ? 0 : step;
}

/* Updates the best evaluation if this one is better, or replaces the best after a resume. */
static int ingest_best(struct sql *c, int64_t job_id, int64_t step, double epoch, double top1,
                       double t, struct error *e)
{
    int better = 0;
    int status = sql_run(c, e, &better,
                         "update job set best_top1 = ?2, best_top1_step = ?3, "
                         "best_top1_epoch = ?4, best_top1_at = ?5 "
                         "where id = ?1 and (best_top1 is null or best_top1 < ?2)",
                         "ididd", job_id, top1, step, epoch, t);

    if (status || better)
        return status;
    return sql_run(c, e, NULL,
                   "update job set (best_top1, best_top1_step, best_top1_epoch, best_top1_at) = "
                   "(select top1, step, epoch, t from eval where job_id = ?1 and top1 is not null "
                   "order by top1 desc, step limit 1) where id = ?1 and best_top1_step = ?2",
                   "ii", job_id, step);
}

static int ingest_eval(struct sql *c, int64_t job_id, const struct store_event *event,
                       struct error *e)
{
    const json_t *body = event->body;
    int64_t step = ingest_step_number(body, "step");
    double top1 = json_get_number(body, "top1", NAN), top5 = json_get_number(body, "top5", NAN);

    double epoch = json_get_number(body, "epoch", NAN);
    int status = sql_run(c, e, NULL,
                         "insert or replace into eval (job_id, step, epoch, top1, top5, loss, "
                         "images, t, calibration_error) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         "iiddddndd", job_id, step, epoch, top1, top5,
                         json_get_number(body, "loss", NAN), json_get_integer(body, "images", -1),
                         event->t, json_get_number(body, "calibration_error", NAN));
    if (!status && !isnan(top1))
        status = ingest_best(c, job_id, step, epoch, top1, event->t, e);
    if (status)
        return status;
    /* A job that only evaluates gets the step of its weights. */
    return sql_run(c, e, NULL,
                   "update job set top1 = ?2, top5 = ?3, "
                   "step = case when train_steps = 0 then ?4 else step end where id = ?1",
                   "iddi", job_id, top1, top5, step);
}

/* Every event has the total of its attempt. */
static int ingest_energy(struct sql *c, const struct store_batch *batch,
                         const struct store_event *event, struct error *e)
{
    const json_t *body = event->body;
    double joules = json_get_number(body, "joules", NAN);
    int64_t hosts = json_get_integer(body, "hosts", 0);

    if (!(joules >= 0) || !isfinite(joules) || hosts < 1)
        return 0; /* stored as an event only */
    int status = sql_run(c, e, NULL,
                         "insert or replace into attempt_energy "
                         "(job_id, attempt, joules, hosts, hosts_measured) values (?, ?, ?, ?, ?)",
                         "iidii", batch->job_id, batch->attempt, joules, hosts,
                         json_get_integer(body, "hosts_measured", 0));
    return status ? status : store_job_sum_energy(c, batch->job_id, e);
}

static int ingest_run_stop(struct sql *c, int64_t job_id, const struct store_event *event,
                           struct error *e)
{
    const json_t *body = event->body;
    return sql_run(c, e, NULL,
                   "update job set ttt_seconds = coalesce(?2, ttt_seconds), "
                   "images_per_sec = coalesce(?3, images_per_sec), top1 = coalesce(?4, top1), "
                   "top5 = coalesce(?5, top5) where id = ?1",
                   "idddd", job_id, json_get_number(body, "ttt_seconds", NAN),
                   json_get_number(body, "images_per_sec", NAN), json_get_number(body, "top1", NAN),
                   json_get_number(body, "top5", NAN));
}

/* The attempt starts from its checkpoint; an earlier one may have got further. */
static int ingest_run_start(struct sql *c, int64_t job_id, const struct store_event *event,
                            struct error *e)
{
    return sql_run(c, e, NULL, "update job set step = ?2 where id = ?1", "ii", job_id,
                   ingest_step_number(event->body, "resumed_step"));
}

static int ingest_event(struct sql *c, const struct store_batch *batch,
                        const struct store_event *event, struct steps *steps, struct error *e)
{
    const char *type = json_string_value(json_object_get(event->body, "type"));
    const char *name = type ? type : event_type_name(event->type);
    int inserted = 0;

    int status = event->own ? event_insert_text(c, batch->job_id, batch->attempt, event->seq,
                                                event->t, name, event->own, &inserted, e)
                            : event_insert_body(c, batch->job_id, batch->attempt, event->seq,
                                                event->t, name, event->body, &inserted, e);
    if (status || !inserted)
        return status;
    struct store_fact fact = {.id = batch->job_id,
                              .attempt = batch->attempt,
                              .type = event->type,
                              .body = event->body,
                              .t = event->t};
    switch (event->type) {
    case EVENT_RUN_START:
        return ingest_run_start(c, batch->job_id, event, e);
    case EVENT_STEP:
        return ingest_step(c, batch->job_id, event, steps, e);
    case EVENT_EVAL:
        status = ingest_eval(c, batch->job_id, event, e);
        return status ? status : event_call_hook(c, &fact, e);
    case EVENT_CONFUSION:
        return confusion_store(c, batch->job_id, event->body, e);
    case EVENT_ENERGY:
        return ingest_energy(c, batch, event, e);
    case EVENT_STRAGGLER:
    case EVENT_WARNING:
        return event_call_hook(c, &fact, e);
    case EVENT_RUN_STOP: /* more accurate than the speed of the last step */
        status = ingest_finish_steps(c, batch->job_id, steps, e);
        steps->newest = NULL;
        return status ? status : ingest_run_stop(c, batch->job_id, event, e);
    default:
        return 0;
    }
}

static int ingest_read_position(struct sql *c, int64_t job_id, int64_t attempt, int64_t *bytes,
                                struct error *e)
{
    int found = sql_one(c, e, "select bytes from ingest_position where job_id = ? and attempt = ?",
                        "ii:i", job_id, attempt, bytes);

    return found < 0 ? found : 0;
}

static int ingest_change_state(struct sql *c, const struct store_batch *batch, struct error *e)
{
    if (!batch->change)
        return 0;
    int same = sql_one(c, e, "select 1 from job where id = ? and state = ?", "is", batch->job_id,
                       job_state_name(batch->change->to));
    if (same)
        return same > 0 ? 0 : same;
    return store_state_apply(c, batch->job_id, batch->change, e);
}

static int ingest_batch(struct sql *c, const struct store_batch *batch, struct error *e)
{
    int64_t at;
    struct steps steps = {0};
    int status = ingest_read_position(c, batch->job_id, batch->attempt, &at, e);

    if (status == 0 && at != batch->from_bytes)
        status = error_set(e, ERR_CONFLICT,
                           "events of job %lld, attempt %lld, were read up to byte %lld, not %lld",
                           (long long)batch->job_id, (long long)batch->attempt, (long long)at,
                           (long long)batch->from_bytes);
    for (size_t i = 0; status == 0 && i < batch->count; i++)
        status = ingest_event(c, batch, &batch->events[i], &steps, e);
    if (status == 0)
        status = ingest_finish_steps(c, batch->job_id, &steps, e);
    if (status == 0)
        status = sql_run(c, e, NULL,
                         "insert or replace into ingest_position (job_id, attempt, bytes) "
                         "values (?, ?, ?)",
                         "iii", batch->job_id, batch->attempt, batch->to_bytes);
    return status ? status : ingest_change_state(c, batch, e);
}

int store_ingest(struct store *s, const struct store_batch *batch, struct error *e)
{
    assert_always(batch->to_bytes >= batch->from_bytes);
    for (size_t i = 1; i < batch->count; i++)
        assert_always(batch->events[i].seq > batch->events[i - 1].seq);
    return sql_transaction(s, false, c, e, ingest_batch(c, batch, e));
}

int store_ingest_position(struct store *s, int64_t job_id, int64_t attempt, int64_t *bytes,
                          struct error *e)
{
    struct sql *c = sql_read_begin(s);
    int status = ingest_read_position(c, job_id, attempt, bytes, e);
    sql_read_end(s, c);
    return status;
}

int store_ingest_seq(struct store *s, int64_t job_id, int64_t attempt, int64_t *seq,
                     struct error *e)
{
    return once_get(s, e, "select max(seq) from job_event where job_id = ? and attempt = ?", "ii:i",
                    job_id, attempt, seq);
}
