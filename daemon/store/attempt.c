#include "daemon/store/attempt.h"

#include <math.h>
#include <stdlib.h>

#include "common/xalloc.h"
#include "daemon/store/audit.h"
#include "daemon/store/event.h"
#include "daemon/store/job_label.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"
#include "daemon/store/usage.h"

int store_job_sum_energy(struct sql *c, int64_t job_id, struct error *e)
{
    return sql_run(c, e, NULL,
                   "update job set (joules, joules_whole) = (select nullif(sum(joules), 0), "
                   "min(hosts_measured >= hosts) from attempt_energy where job_id = ?1) "
                   "where id = ?1 and exists (select 1 from attempt_energy where job_id = ?1)",
                   "i", job_id);
}

static int attempt_begin(struct sql *c, int64_t id, const struct store_state_change *change,
                         int64_t above, int64_t *attempt, struct error *e)
{
    if (store_check_not_held(c, id, e) ||
        sql_run(c, e, NULL,
                "update job set attempt = max(attempt, ?3) + 1, launcher_pid = null, "
                "launcher_start = null, exit_code = null, exit_signal = null, not_before = null, "
                "estimated_start = null, attempt_started_at = ?2 where id = ?1",
                "idi", id, change->now, above) ||
        store_state_apply(c, id, change, e))
        return -(int)e->code;
    int found = sql_one(c, e, "select attempt from job where id = ?", "i:i", id, attempt);
    return found < 0 ? found : 0;
}

int store_job_begin_attempt(struct store *s, int64_t id, const struct store_state_change *change,
                            int64_t above, int64_t *attempt, struct error *e)
{
    return sql_transaction(s, false, c, e, attempt_begin(c, id, change, above, attempt, e));
}

int store_job_set_launcher(struct store *s, int64_t id, int64_t pid, int64_t pid_start,
                           struct error *e)
{
    int changed;
    int status = once_run(s, true, &changed, e,
                          "update job set launcher_pid = ?, launcher_start = ? where id = ?", "iii",
                          pid, pid_start, id);

    if (status || changed)
        return status;
    return error_set(e, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
}

int store_job_hand_to_slurm(struct store *s, int64_t id, int64_t attempt, const char *slurm,
                            struct error *e)
{
    int changed;
    int status = once_run(s, true, &changed, e,
                          "update job set slurm = ?3 where id = ?1 and attempt = ?2 and "
                          "state = 'queued'",
                          "iis", id, attempt, slurm);

    if (status || changed)
        return status;
    return error_set(e, ERR_CONFLICT, "the state of job %lld has changed meanwhile", (long long)id);
}

int store_job_set_slurm(struct store *s, int64_t id, const char *slurm, struct error *e)
{
    return once_run(s, false, NULL, e, "update job set slurm = ?2 where id = ?1", "is", id, slurm);
}

static int attempt_keep_failure(struct sql *c, int64_t id, const struct store_attempt_end *end,
                                struct error *e)
{
    char *text = must_alloc(json_dumps(end->failure, JSON_COMPACT));
    int status = sql_run(c, e, NULL, "update job set failure = coalesce(failure, ?) where id = ?",
                         "si", text, id);
    free(text);
    if (status)
        return status;
    int told = sql_one(
        c, e, "select 1 from job_event where job_id = ? and attempt = ? and type = 'failed'", "ii",
        id, end->attempt);
    if (told)
        return told < 0 ? told : 0;
    return store_event_insert(c, id, end->attempt, "failed", end->failure, end->change.now, e);
}

/* Inserts the states that were skipped: Slurm may not report the start of a short run, and its
 * events may not show that it was running. */
static int attempt_pass_through_running(struct sql *c, int64_t id,
                                        const struct store_attempt_end *end, struct error *e)
{
    static const struct {
        const char *from;
        enum job_state to;
    } steps[] = {
        {"queued",   JOB_STARTING},
        {"starting", JOB_RUNNING }
    };

    for (size_t i = 0; end->change.to == JOB_SUCCEEDED && i < 2; i++) {
        struct store_state_change step = {steps[i].to, NULL, end->change.now, NULL};
        int there =
            sql_one(c, e, "select 1 from job where id = ? and state = ?", "is", id, steps[i].from);
        int status = there > 0 ? store_state_apply(c, id, &step, e) : there;
        if (status)
            return status;
    }
    return 0;
}

/* Stores the energy if the workers measured it on all nodes. An attempt that trained without a
 * measurement makes the job's energy incomplete. */
static int attempt_energy(struct sql *c, int64_t id, const struct store_attempt_end *end,
                          struct error *e)
{
    bool known = end->joules > 0 && isfinite(end->joules);
    int changed = 0;
    int status = sql_run(
        c, e, &changed,
        known ? "insert into attempt_energy (job_id, attempt, joules, hosts, hosts_measured) "
                "select id, ?2, ?3, nodes, nodes from job where id = ?1 "
                "on conflict do update set joules = excluded.joules, hosts = excluded.hosts, "
                "hosts_measured = excluded.hosts where hosts_measured < hosts"
              : "insert into attempt_energy (job_id, attempt, joules, hosts, hosts_measured) "
                "select id, ?2, ?3, nodes, 0 from job where id = ?1 and exists (select 1 from "
                "job_event where job_id = ?1 and attempt = ?2 and type = 'step') "
                "on conflict do nothing",
        "iid", id, end->attempt, known ? end->joules : 0.0);

    return status || !changed ? status : store_job_sum_energy(c, id, e);
}

static int attempt_tell_failure(struct sql *c, int64_t id, const struct store_attempt_end *end,
                                struct error *e)
{
    struct store_fact fact = {
        .what = STORE_FACT_FAILURE,
        .id = id,
        .attempt = end->attempt,
        .body = end->failure,
        .tell = end->tell,
        .t = end->change.now,
    };

    return store_call_hook(c, &fact, e);
}

static int attempt_end(struct sql *c, int64_t id, const struct store_attempt_end *end,
                       struct error *e)
{
    if ((end->change.to == JOB_QUEUED && store_check_not_cancelled(c, id, e)) ||
        sql_run(c, e, NULL,
                "update job set exit_code = ?, exit_signal = ?, "
                "images_per_sec = coalesce(?, images_per_sec) where id = ?",
                "nndi", end->exit_code, end->exit_signal, end->images_per_sec, id) ||
        (end->failure && attempt_keep_failure(c, id, end, e)) || attempt_energy(c, id, end, e))
        return -(int)e->code;
    if ((end->restarts || end->goes_on) &&
        sql_run(c, e, NULL,
                "update job set restarts = restarts + ?4, resumes = ?2, not_before = ?3, "
                "slurm = iif(?5, slurm, null) where id = ?1",
                "iitii", id, (int64_t)end->resumes, end->not_before, (int64_t)end->restarts,
                (int64_t)(end->next != NULL)))
        return -(int)e->code;
    if (attempt_pass_through_running(c, id, end, e) || store_state_apply(c, id, &end->change, e) ||
        (end->failure && attempt_tell_failure(c, id, end, e)))
        return -(int)e->code;
    return end->next ? attempt_begin(c, id, &end->change, 0, end->next, e) : 0;
}

int store_attempt_end(struct store *s, int64_t id, const struct store_attempt_end *end,
                      struct error *e)
{
    return sql_transaction(s, true, c, e, attempt_end(c, id, end, e));
}

static int attempt_check_from(struct sql *c, int64_t id, bool queued, struct error *e)
{
    int right =
        sql_one(c, e,
                queued ? "select 1 from job where id = ? and state = 'queued'"
                       : "select 1 from job where id = ? and state in ('failed', 'cancelled')",
                "i", id);

    if (right)
        return right < 0 ? right : 0;
    return error_set(e, ERR_CONFLICT, "the state of job %lld has changed meanwhile", (long long)id);
}

/* Counts for the job's submitter, whoever resumes it. */
static int attempt_check_limit(struct sql *c, int64_t id, int64_t max_queued, struct error *e)
{
    char *owner;
    int found = sql_one(c, e,
                        "select submitted_by from job where id = ? and "
                        "coalesce(submitted_by, '') not glob 'sweep [0-9]*'",
                        "i:s", id, &owner);

    if (found <= 0)
        return found;
    int status = store_usage_check_queued(c, owner, max_queued, e);
    free(owner);
    return status;
}

static int attempt_requeue(struct sql *c, int64_t id, const struct store_job_again *a,
                           struct error *e)
{
    struct store_state_change queued = {JOB_QUEUED, a->reason, a->now, a->by};
    struct store_audit line = {STORE_AUDIT_JOB_RESUME, id, a->by, NULL, a->now};
    int64_t attempt;

    if (attempt_check_from(c, id, a->keeps_place, e) ||
        (a->max_queued > 0 && !a->keeps_place && attempt_check_limit(c, id, a->max_queued, e)) ||
        sql_run(c, e, NULL,
                "update job set spec = ?2, plan = ?3, priority = ?4, resumes = ?5, "
                "not_before = null, estimated_start = null, "
                "images_per_sec = iif(?6, null, images_per_sec), wanted = ?7 where id = ?1",
                "issiiis", id, a->spec, a->plan, a->priority, (int64_t)a->resumes,
                (int64_t)a->other_speed, a->wanted) ||
        store_label_document(c, id, e)) /* labels may have been changed meanwhile */
        return -(int)e->code;
    if (!a->keeps_place && (sql_run(c, e, NULL,
                                    "update job set restarts = 0, failure = null, "
                                    "cancel_attempt = null where id = ?",
                                    "i", id) ||
                            store_job_to_end_of_queue(c, id, a->now, e)))
        return -(int)e->code;
    if (store_job_set_size(c, id, &a->size, e) || store_state_apply(c, id, &queued, e) ||
        sql_one(c, e, "select attempt from job where id = ?", "i:i", id, &attempt) < 0 ||
        (!a->keeps_place &&
         store_audit_write(c, &line, e))) /* a shrunk job was not changed by a user */
        return -(int)e->code;
    return store_event_insert(c, id, attempt, "resume", a->event, a->now, e);
}

int store_job_again(struct store *s, int64_t id, const struct store_job_again *a, struct error *e)
{
    return sql_transaction(s, true, c, e, attempt_requeue(c, id, a, e));
}

int store_jobs_wait(struct store *s, const struct store_waiting *jobs, size_t count,
                    struct error *e)
{
    struct sql *c = sql_write_begin(s, false, e);
    int status = 0;

    if (!c)
        return -(int)e->code;
    for (size_t i = 0; i < count && !status; i++)
        status = sql_run(c, e, NULL,
                         "update job set reason = ?2, estimated_start = ?3 "
                         "where id = ?1 and state = 'queued' and held_at is null",
                         "ist", jobs[i].id, jobs[i].reason, jobs[i].estimated_start);
    return sql_write_end(s, c, status, e);
}
