#include "daemon/store/import.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "daemon/store/audit.h"
#include "daemon/store/find/label.h"
#include "daemon/store/sql.h"

#define EVENTS_AT_A_TIME 512

struct import {
    struct sql *c;
    const struct store_import *job;
    int64_t id, seq;
    enum job_state last; /* that an event told; JOB_STATE_COUNT: none did */
    struct store_event events[EVENTS_AT_A_TIME];
    struct store_batch batch;
};

static int import_find(struct sql *c, const char *digest, int64_t *id, struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e, "select id from job where import_digest = ?", "s", digest);
    int found = row ? sql_row(c, row, e) : -(int)e->code;

    if (found <= 0)
        return found;
    *id = sqlite3_column_int64(row, 0);
    sql_done(row);
    return 1;
}

static int import_insert(struct import *i, struct error *e)
{
    const struct store_import *job = i->job;
    int status = sql_run(
        i->c, e, NULL,
        "insert into job (name, state, reason, spec, plan, attempt, slots, train_steps, "
        "created_at, started_at, finished_at, submitted_by, exit_code, exit_signal, "
        "imported_from, imported_attempts, import_digest, note, run_dir) "
        "values (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?6, ?15, ?16, '')",
        "sssssiitttsnnsss", job->name, job_state_name(job->state), job->reason, job->spec,
        job->plan, job->attempt, job->size.train_steps, job->created_at, job->started_at,
        job->finished_at, job->by, job->exit_code, job->exit_signal, job->from, job->digest,
        job->note);

    if (status)
        return status;
    i->id = sqlite3_last_insert_rowid(sql_db(i->c));
    i->batch.job_id = i->id;
    status =
        sql_run(i->c, e, NULL, "update job set run_dir = 'jobs/' || id where id = ?", "i", i->id);
    if (!status)
        status = store_tags_insert(i->c, i->id, job->tags, job->tag_count, e);
    return status ? status : store_job_set_size(i->c, i->id, &job->size, e);
}

/* ---- events */

static void import_drop(struct import *i)
{
    for (size_t k = 0; k < i->batch.count; k++)
        json_decref((json_t *)i->events[k].body);
    i->batch.count = 0;
}

static int import_flush(struct import *i, struct error *e)
{
    int status = i->batch.count ? store_events_take(i->c, &i->batch, e) : 0;

    import_drop(i);
    return status;
}

static void note_state(struct import *i, const struct store_import_event *event)
{
    if (strcmp(event->type, "state") == 0)
        i->last = job_state_of(json_get_text(event->body, "state", ""));
}

static int import_event(struct import *i, const struct store_import_event *event, struct error *e)
{
    int status = 0;

    if (i->batch.count == EVENTS_AT_A_TIME || i->batch.attempt != event->attempt)
        status = import_flush(i, e);
    if (status)
        return status;
    struct store_event *to = &i->events[i->batch.count++];
    json_t *body = json_copy((json_t *)event->body);
    json_object_set_new(body, "type", json_string(event->type));
    json_object_del(body, "by"); /* a user or token of the daemon there, which may exist here too */
    /* Every one has a number, as what workers write. */
    *to = (struct store_event){
        .seq = ++i->seq, .t = event->t, .type = event_type_of(event->type), .body = body};
    if (to->type == EVENT_STEP)
        store_step_of(body, &to->step);
    i->batch.attempt = event->attempt;
    note_state(i, event);
    return 0;
}

static int import_events(struct import *i, struct error *e)
{
    struct store_import_event event;
    int found, status = 0;

    while (!status && (found = i->job->next(i->job->context, &event, e)))
        status = found < 0 ? found : import_event(i, &event, e);
    if (!status)
        status = import_flush(i, e);
    import_drop(i);
    if (!status)
        status = store_events_sum(i->c, i->id, e);
    if (!status && i->last != i->job->state)
        status = error_set(e, ERR_INVALID,
                           "the events of the archive end with the state %s, but the job's is %s",
                           i->last == JOB_STATE_COUNT ? "of no job" : job_state_name(i->last),
                           job_state_name(i->job->state));
    return status;
}

/* ---- the whole */

static int import_all(struct import *i, struct error *e)
{
    const struct store_import *job = i->job;
    struct store_job placed = {.id = 0, .created_at = job->created_at};
    int status = import_insert(i, e);

    if (!status)
        status = import_events(i, e);
    struct store_audit line = {STORE_AUDIT_JOB_IMPORT, i->id, job->by, job->name, job->now};
    if (!status)
        status = store_audit_write(i->c, &line, e);
    placed.id = i->id;
    return status ? status : job->place(job->context, &placed, e);
}

int store_job_import(struct store *s, const struct store_import *job, int64_t *id, bool *existed,
                     struct error *e)
{
    struct import *i = calloc(1, sizeof *i);
    struct sql *c = i ? sql_write_begin(s, true, e) : NULL;

    *existed = false;
    if (!i)
        return error_set(e, ERR_NO_MEMORY, "no memory to import a job");
    if (!c) {
        free(i);
        return -(int)e->code;
    }
    *i = (struct import){.c = c, .job = job, .last = JOB_STATE_COUNT};
    i->batch.events = i->events;
    i->batch.of_the_past = true;
    int status = import_find(c, job->digest, id, e);
    *existed = status > 0;
    if (status == 0)
        status = import_all(i, e);
    if (!*existed)
        *id = i->id;
    status = sql_write_end(s, c, status < 0 ? status : 0, e);
    free(i);
    return status;
}
