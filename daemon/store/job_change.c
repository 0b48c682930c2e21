#include "daemon/store/job_change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "daemon/store/audit.h"
#include "daemon/store/event.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"
#include "daemon/store/usage.h"

int store_job_state_now(struct sql *c, int64_t id, enum job_state *state, struct error *e)
{
    char *name;
    int found = sql_one(c, e, "select state from job where id = ?", "i:s", id, &name);

    if (found == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
    if (found < 0)
        return found;
    *state = job_state_of(name);
    free(name);
    if (*state == JOB_STATE_COUNT)
        return error_set(e, ERR_CORRUPT, "job %lld has a state this version does not know",
                         (long long)id);
    return 0;
}

int store_check_not_cancelled(struct sql *c, int64_t id, struct error *e)
{
    int asked =
        sql_one(c, e, "select 1 from job where id = ? and cancel_attempt = attempt", "i", id);

    if (asked <= 0)
        return asked;
    return error_set(e, ERR_CONFLICT, "the cancellation of job %lld has been requested",
                     (long long)id);
}

static int change_apply(struct sql *c, int64_t id, const struct store_state_change *change,
                        bool *ended, struct error *e)
{
    enum job_state from;
    int status = store_job_state_now(c, id, &from, e);

    if (status)
        return status;
    *ended = from != change->to && job_state_is_final(change->to);
    if (from != change->to && !job_state_leads_to(from, change->to))
        return error_set(e, ERR_CONFLICT, "job %lld is %s and cannot become %s", (long long)id,
                         job_state_name(from), job_state_name(change->to));
    if (job_state_is_active(from) && change->to == JOB_QUEUED &&
        store_check_not_cancelled(c, id, e))
        return -(int)e->code;
    if (job_state_is_active(from) && !job_state_is_active(change->to) &&
        store_usage_end(c, id, change->now, e))
        return -(int)e->code;
    status = sql_run(
        c, e, NULL,
        "update job set state = ?2, reason = ?3, "
        "started_at = case when ?2 = 'starting' then coalesce(started_at, ?4) else started_at end, "
        "finished_at = case when ?5 then ?4 else null end, "
        "held_at = case when ?2 = 'queued' then held_at end, "
        "node_seconds = case when active_since is not null and not ?6 "
        "then coalesce(node_seconds, 0) + max(0, ?4 - active_since) * nodes else node_seconds end, "
        "active_since = case when ?6 then coalesce(active_since, ?4) end where id = ?1",
        "isstii", id, job_state_name(change->to), change->reason, change->now,
        (int64_t)job_state_is_final(change->to), (int64_t)job_state_is_active(change->to));
    if (!status)
        status = store_event_state(c, id, change, e);
    if (status || !*ended)
        return status;
    struct store_fact fact = {.what = STORE_FACT_END, .id = id, .change = change, .t = change->now};
    return store_call_hook(c, &fact, e);
}

/* Places a job after all queued ones, even if the clock was set back. Without "indexed by" SQLite
 * reads them all. */
#define END_OF_QUEUE                                                                               \
    "max(?1, coalesce((select max(queued_at) from job indexed by job_by_queue "                    \
    "where state = 'queued'), ?1))"

int store_job_to_end_of_queue(struct sql *c, int64_t id, double now, struct error *e)
{
    return sql_run(c, e, NULL, "update job set queued_at = " END_OF_QUEUE " where id = ?2", "di",
                   now, id);
}

int store_waits_for(struct sql *c, int64_t id, char reason[STORE_WAITS_BYTES], struct error *e)
{
    char *ids = NULL;
    int64_t count = 0;
    int found = sql_one(c, e,
                        "select group_concat(after_id, ', '), count(*) from "
                        "(select after_id from job_after where job_id = ? order by after_id)",
                        "i:si", id, &ids, &count);

    if (count > 0)
        snprintf(reason, STORE_WAITS_BYTES, "waiting until job%s %s %s succeeded",
                 count > 1 ? "s" : "", ids, count > 1 ? "have" : "has");
    else
        reason[0] = '\0';
    free(ids);
    return found < 0 ? found : 0;
}

/* A job's turn in the queue begins when all jobs before it have succeeded. */
static int change_follow(struct sql *c, int64_t id, int64_t before, double now, struct error *e)
{
    char reason[STORE_WAITS_BYTES];
    struct store_state_change same = {JOB_QUEUED, reason, now, NULL};
    bool held, ended;

    if (sql_run(c, e, NULL, "delete from job_after where job_id = ?1 and after_id = ?2", "ii", id,
                before) ||
        store_waits_for(c, id, reason, e) ||
        sql_one(c, e, "select held_at is not null from job where id = ?", "i:b", id, &held) < 0)
        return -(int)e->code;
    if (!*reason) {
        snprintf(reason, sizeof reason, "job %lld has succeeded", (long long)before);
        if (store_job_to_end_of_queue(c, id, now, e))
            return -(int)e->code;
    }
    return held ? 0 : change_apply(c, id, &same, &ended, e);
}

static int change_end_waiting(struct sql *c, int64_t id, int64_t before, bool failed, double now,
                              struct error *e)
{
    char reason[128];
    struct store_state_change cancelled = {JOB_CANCELLED, reason, now, NULL};
    bool ended;

    snprintf(reason, sizeof reason, "cancelled, as it was to start after job %lld, which %s",
             (long long)before, failed ? "has failed" : "was cancelled");
    int status = sql_run(c, e, NULL, "delete from job_after where job_id = ?", "i", id);
    return status ? status : change_apply(c, id, &cancelled, &ended, e);
}

/* Changes the jobs that wait for an ended one, those that wait for these, and so on. */
static int change_waiting_for(struct sql *c, int64_t id, const struct store_state_change *change,
                              struct error *e)
{
    int64_t *ended = NULL, next;
    size_t count = 0, room = 0;
    int found = 1, status = 0;

    array_add(ended, count, room) = id;
    for (size_t i = 0; i < count && !status; i++)
        while (!status &&
               (found = sql_one(c, e, "select job_id from job_after where after_id = ? limit 1",
                                "i:i", ended[i], &next)) > 0) {
            if (change->to == JOB_SUCCEEDED) {
                status = change_follow(c, next, id, change->now, e);
            } else {
                status = change_end_waiting(c, next, ended[i], i == 0 && change->to == JOB_FAILED,
                                            change->now, e);
                array_add(ended, count, room) = next;
            }
        }
    free(ended);
    return found < 0 ? found : status;
}

int store_state_apply(struct sql *c, int64_t id, const struct store_state_change *change,
                      struct error *e)
{
    bool ended = false;
    int status = change_apply(c, id, change, &ended, e);

    if (!status && ended)
        status = sql_run(c, e, NULL, "delete from job_after where job_id = ?", "i", id);
    return status || !ended ? status : change_waiting_for(c, id, change, e);
}

int store_job_set_state(struct store *s, int64_t id, const struct store_state_change *change,
                        struct error *e)
{
    return sql_transaction(s, true, c, e, store_state_apply(c, id, change, e));
}

static int job_cancel_waiting(struct sql *c, int64_t id, const char *reason, const char *by,
                              double now, struct error *e)
{
    struct store_state_change cancelled = {JOB_CANCELLED, reason, now, by};
    int found = sql_one(
        c, e, "select 1 from job where id = ? and state = 'queued' and slurm is null", "i", id);

    if (found < 0)
        return found;
    if (found == 0)
        return error_set(e, ERR_CONFLICT, "the state of job %lld has changed meanwhile",
                         (long long)id);
    struct store_audit line = {STORE_AUDIT_JOB_CANCEL, id, by, NULL, now};
    return store_audit_write(c, &line, e) ? -(int)e->code : store_state_apply(c, id, &cancelled, e);
}

int store_job_cancel_waiting(struct store *s, int64_t id, const char *reason, const char *by,
                             double now, struct error *e)
{
    return sql_transaction(s, true, c, e, job_cancel_waiting(c, id, reason, by, now, e));
}

static int job_ask_cancel(struct sql *c, int64_t id, int64_t attempt, const char *by, double now,
                          struct error *e)
{
    struct store_state_change same = {JOB_QUEUED, "being cancelled", now, by};
    int changed = 0;
    int status = sql_run(c, e, &changed,
                         "update job set cancel_attempt = ?2 where id = ?1 and attempt = ?2 and "
                         "(state in ('starting', 'running', 'evaluating') or "
                         "state = 'queued' and slurm is not null)",
                         "ii", id, attempt);

    if (!status && changed == 0)
        status = error_set(e, ERR_CONFLICT, "the state of job %lld has changed meanwhile",
                           (long long)id);
    struct store_audit line = {STORE_AUDIT_JOB_CANCEL, id, by, NULL, now};
    if (status || store_audit_write(c, &line, e) || store_job_state_now(c, id, &same.to, e))
        return -(int)e->code;
    return store_state_apply(c, id, &same, e);
}

int store_job_ask_cancel(struct store *s, int64_t id, int64_t attempt, const char *by, double now,
                         struct error *e)
{
    return sql_transaction(s, true, c, e, job_ask_cancel(c, id, attempt, by, now, e));
}

int store_job_set_disk(struct store *s, int64_t id, int64_t bytes, struct error *e)
{
    return once_run(s, false, NULL, e,
                    "update job set disk_bytes = ?2 where id = ?1 and disk_bytes is not ?2", "ii",
                    id, bytes);
}

struct waiting_job {
    enum job_state state;
    bool held, in_slurm;
    int64_t priority;
};

static int change_read_waiting(struct sql *c, int64_t id, struct waiting_job *job, struct error *e)
{
    int status = store_job_state_now(c, id, &job->state, e);

    if (status)
        return status;
    status = sql_one(
        c, e, "select held_at is not null, slurm is not null, priority from job where id = ?",
        "i:bbi", id, &job->held, &job->in_slurm, &job->priority);
    return status < 0 ? status : 0;
}

static int change_check_waiting(int64_t id, const struct waiting_job *job,
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
                         "job %lld is in Slurm's queue and cannot be %s here: use scontrol",
                         (long long)id, what);
    if (change->what == STORE_HOLD && job->held)
        return error_set(e, ERR_CONFLICT, "job %lld is already held", (long long)id);
    if (change->what == STORE_RELEASE && !job->held)
        return error_set(e, ERR_CONFLICT, "job %lld is not held", (long long)id);
    return 0;
}

/* Excludes held time from the waiting time. */
static int change_write_waiting(struct sql *c, int64_t id,
                                const struct store_waiting_change *change, struct error *e)
{
    switch (change->what) {
    case STORE_HOLD:
        return sql_run(c, e, NULL,
                       "update job set held_at = ?2, held_by = ?3, estimated_start = null "
                       "where id = ?1",
                       "ids", id, change->now, change->by);
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

/* Formats the reason shown until the next scheduling pass, which skips held jobs. */
static void change_reason(const struct waiting_job *job, const struct store_waiting_change *change,
                          char *text, size_t bytes)
{
    bool held = change->what == STORE_HOLD || (change->what == STORE_PRIORITY && job->held);

    int used = snprintf(text, bytes, "%s", held ? "held until it is released" : "");
    if (change->what == STORE_PRIORITY)
        snprintf(text + used, bytes - (size_t)used, "%spriority %lld, was %lld", held ? "; " : "",
                 (long long)change->priority, (long long)job->priority);
    else if (change->what == STORE_RELEASE)
        snprintf(text, bytes, "released");
}

static int change_waiting_job(struct sql *c, int64_t id, const struct store_waiting_change *change,
                              struct error *e)
{
    struct waiting_job job = {0};
    char waits[STORE_WAITS_BYTES], reason[128 + STORE_WAITS_BYTES];

    if (change_read_waiting(c, id, &job, e) || change_check_waiting(id, &job, change, e) ||
        change_write_waiting(c, id, change, e))
        return -(int)e->code;
    change_reason(&job, change, reason, sizeof reason);
    if (store_waits_for(c, id, waits, e))
        return -(int)e->code;
    if (*waits)
        snprintf(reason + strlen(reason), sizeof reason - strlen(reason), "; %s", waits);
    static const enum store_audit_kind kinds[] = {[STORE_HOLD] = STORE_AUDIT_JOB_HOLD,
                                                  [STORE_RELEASE] = STORE_AUDIT_JOB_RELEASE,
                                                  [STORE_PRIORITY] = STORE_AUDIT_JOB_PRIORITY};
    struct store_audit line = {kinds[change->what], id, change->by, NULL, change->now};
    char priority[24];
    snprintf(priority, sizeof priority, "%lld", (long long)change->priority);
    if (change->what == STORE_PRIORITY)
        line.detail = priority;
    if (store_audit_write(c, &line, e))
        return -(int)e->code;
    struct store_state_change same = {JOB_QUEUED, reason, change->now, change->by};
    return store_state_apply(c, id, &same, e);
}

int store_job_change_waiting(struct store *s, int64_t id, const struct store_waiting_change *change,
                             struct error *e)
{
    return sql_transaction(s, true, c, e, change_waiting_job(c, id, change, e));
}

int store_check_not_held(struct sql *c, int64_t id, struct error *e)
{
    int held = sql_one(c, e, "select 1 from job where id = ? and held_at is not null", "i", id);

    return held <= 0 ? held : error_set(e, ERR_CONFLICT, "job %lld is held", (long long)id);
}
