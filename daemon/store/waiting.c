/* What people change about a job that waits: whether it is held, and its priority. */
#include <stdio.h>

#include "daemon/store/audit.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"

/* What is known of a job before the change. */
struct waiting_job {
    enum job_state state;
    bool held, in_slurm;
    int64_t priority;
};

static int waiting_read(struct sql *c, int64_t id, struct waiting_job *job, struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e,
                                  "select state, held_at is not null, slurm is not null, priority "
                                  "from job where id = ?",
                                  "i", id);
    int found = sql_row(c, row, e);

    if (found == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
    if (found < 0)
        return found;
    *job = (struct waiting_job){
        .state = job_state_of((const char *)sqlite3_column_text(row, 0)),
        .held = sqlite3_column_int(row, 1) != 0,
        .in_slurm = sqlite3_column_int(row, 2) != 0,
        .priority = sqlite3_column_int64(row, 3),
    };
    sql_done(row);
    return 0;
}

static int waiting_check(int64_t id, const struct waiting_job *job,
                         const struct store_waiting_change *change, struct error *e)
{
    const char *what = change->what == STORE_PRIORITY ? "given another priority"
                       : change->what == STORE_HOLD   ? "held"
                                                      : "released";

    if (job->state != JOB_QUEUED)
        return error_set(e, ERR_CONFLICT, "job %lld is in state %s: only queued jobs can be %s",
                         (long long)id, job_state_name(job->state), what);
    if (job->in_slurm)
        return error_set(e, ERR_CONFLICT,
                         "job %lld waits in Slurm's queue, and so cannot be %s here: use scontrol",
                         (long long)id, what);
    if (change->what == STORE_HOLD && job->held)
        return error_set(e, ERR_CONFLICT, "job %lld is held already", (long long)id);
    if (change->what == STORE_RELEASE && !job->held)
        return error_set(e, ERR_CONFLICT, "job %lld is not held", (long long)id);
    return 0;
}

/* The time for which it was held counts as no waiting. */
static int waiting_write(struct sql *c, int64_t id, const struct store_waiting_change *change,
                         struct error *e)
{
    switch (change->what) {
    case STORE_HOLD:
        return sql_run(c, e, NULL,
                       "update job set held_at = ?2, estimated_start = null where id = ?1", "id",
                       id, change->now);
    case STORE_RELEASE:
        return sql_run(c, e, NULL,
                       "update job set queued_at = queued_at + max(0, ?2 - held_at), "
                       "held_at = null where id = ?1",
                       "id", id, change->now);
    default:
        return sql_run(c, e, NULL,
                       "update job set priority = ?2, spec = json_set(spec, '$.priority', ?2) "
                       "where id = ?1",
                       "ii", id, change->priority);
    }
}

/* What is told as its reason, until the queue has looked at it. A job that is held is not looked
 * at, so its words stay. */
static void waiting_reason(const struct waiting_job *job, const struct store_waiting_change *change,
                           char *text, size_t bytes)
{
    bool held = change->what == STORE_HOLD || (change->what == STORE_PRIORITY && job->held);

    int used = snprintf(text, bytes, "%s", held ? "held until it is released" : "");
    if (change->what == STORE_PRIORITY)
        snprintf(text + used, bytes - (size_t)used, "%spriority %lld, it was %lld",
                 held ? "; " : "", (long long)change->priority, (long long)job->priority);
    else if (change->what == STORE_RELEASE)
        snprintf(text, bytes, "released");
}

static int waiting_change(struct sql *c, int64_t id, const struct store_waiting_change *change,
                          struct error *e)
{
    struct waiting_job job = {0};
    char reason[128];
    int status = waiting_read(c, id, &job, e);

    if (!status)
        status = waiting_check(id, &job, change, e);
    if (!status)
        status = waiting_write(c, id, change, e);
    if (status)
        return status;
    waiting_reason(&job, change, reason, sizeof reason);
    static const enum store_audit_kind kinds[] = {[STORE_HOLD] = STORE_AUDIT_JOB_HOLD,
                                                  [STORE_RELEASE] = STORE_AUDIT_JOB_RELEASE,
                                                  [STORE_PRIORITY] = STORE_AUDIT_JOB_PRIORITY};
    struct store_audit line = {kinds[change->what], id, change->by, NULL, change->now};
    char priority[24];
    snprintf(priority, sizeof priority, "%lld", (long long)change->priority);
    if (change->what == STORE_PRIORITY)
        line.detail = priority;
    status = store_audit_write(c, &line, e);
    if (status)
        return status;
    struct store_state_change same = {JOB_QUEUED, reason, change->now, change->by};
    return store_state_apply(c, id, &same, e);
}

int store_job_change_waiting(struct store *s, int64_t id, const struct store_waiting_change *change,
                             struct error *e)
{
    struct sql *c = sql_write_begin(s, true, e);

    return c ? sql_write_end(s, c, waiting_change(c, id, change, e), e) : -(int)e->code;
}

int store_check_not_held(struct sql *c, int64_t id, struct error *e)
{
    int held = sql_exists(c, e, "select 1 from job where id = ? and held_at is not null", "i", id);

    return held <= 0 ? held : error_set(e, ERR_CONFLICT, "job %lld is held", (long long)id);
}
