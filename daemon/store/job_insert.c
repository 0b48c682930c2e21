#include "daemon/store/job_insert.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/audit.h"
#include "daemon/store/event.h"
#include "daemon/store/group_commit.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_label.h"
#include "daemon/store/sql.h"
#include "daemon/store/usage.h"

static int job_ids_above(struct sql *c, int64_t id, struct error *e)
{
    int changed = 0;
    int status =
        sql_run(c, e, &changed, "update sqlite_sequence set seq = max(seq, ?1) where name = 'job'",
                "i", id);

    if (status || changed)
        return status;
    return sql_run(c, e, NULL, "insert into sqlite_sequence (name, seq) values ('job', ?1)", "i",
                   id);
}

int store_job_ids_above(struct store *s, int64_t id, struct error *e)
{
    return sql_transaction(s, true, c, e, job_ids_above(c, id, e));
}

int store_find_key(struct sql *c, const char *query, const char *what, const struct store_key *key,
                   int64_t *id, struct error *e)
{
    if (!key->key)
        return 0;
    bool same;
    int found = sql_one(c, e, query, "sss:ib", key->key, key->digest, key->by, id, &same);
    if (found <= 0 || same)
        return found;
    return error_set(e, ERR_CONFLICT,
                     "the Idempotency-Key \"%s\" was used with another document (%s %lld): use "
                     "a new key for a new %s",
                     key->key, what, (long long)*id, what);
}

static int job_find_by_key(struct sql *c, const struct store_key *key, int64_t *id, struct error *e)
{
    return store_find_key(c,
                          "select id, request_digest is ?2 from job "
                          "where idempotency_key = " STORE_KEY("?1", "?3"),
                          "job", key, id, e);
}

int store_job_find_key(struct store *s, const struct store_key *key, int64_t *id, struct error *e)
{
    struct sql *c = sql_read_begin(s);

    *id = 0;
    int found = job_find_by_key(c, key, id, e);
    sql_read_end(s, c);
    return found < 0 ? found : 0;
}

int store_job_set_size(struct sql *c, int64_t id, const struct store_job_size *size,
                       struct error *e)
{
    return sql_run(
        c, e, NULL,
        "update job set slots = ?2, train_steps = ?3, global_batch = ?4, time_limit_seconds = ?5, "
        "predicted_seconds = ?6, predicted_low_seconds = ?7, predicted_high_seconds = ?8, "
        "launcher = ?9, slurm = null, evaluations = ?10, eval_images = ?11, "
        "nodes = ?12, node_share = ?13 where id = ?1",
        "iiiiddddsiiid", id, size->slots, size->train_steps, size->global_batch,
        size->time_limit_seconds, size->predicted_seconds, size->predicted_low_seconds,
        size->predicted_high_seconds, size->launcher ? size->launcher : "local", size->evaluations,
        size->eval_images, size->nodes, size->node_share);
}

/* Stores which jobs it waits for. */
static int job_insert_after(struct sql *c, int64_t id, struct error *e)
{
    char *wrong;
    int found = sql_one(
        c, e,
        "select case when other.id is null then 'there is no job ' || its.id "
        "else 'job ' || its.id || iif(state = 'failed', ' has failed', ' was cancelled') "
        "|| ', so a job after it would never start' end from (select value as id, true as waits "
        "from json_each((select spec from job where id = ?1), '$.after') union all "
        "select json_extract(spec, '$.continues'), false from job where id = ?1) as its "
        "left join job as other on other.id = its.id where its.id is not null "
        "and (other.id is null or (waits and state in ('failed', 'cancelled')))",
        "i:s", id, &wrong);

    if (found <= 0)
        return found < 0 ? found
                         : sql_run(c, e, NULL,
                                   "insert or ignore into job_after (job_id, after_id) "
                                   "select ?1, other.id from job as new, json_each(new.spec, "
                                   "'$.after') as its join job as other on other.id = its.value "
                                   "where new.id = ?1 and other.state <> 'succeeded'",
                                   "i", id);
    error_set(e, ERR_INVALID, "%s", wrong);
    free(wrong);
    return -(int)e->code;
}

static int job_insert(struct sql *c, const struct store_job_new *job, int64_t *id, struct error *e)
{
    struct store_state_change queued = {JOB_QUEUED, job->reason, job->now, job->submitted_by};
    char waits[STORE_WAITS_BYTES];

    int status = sql_run(
        c, e, NULL,
        "insert into job (name, state, reason, spec, plan, idempotency_key, request_digest, "
        "priority, slots, train_steps, created_at, submitted_by, note, run_dir) "
        "values (?1, ?2, ?3, ?4, ?5, " STORE_KEY("?6",
                                                 "?12") ", ?7, ?8, ?9, ?10, ?11, ?12, ?13, '')",
        "sssssssiiitss", job->name, job_state_name(JOB_QUEUED), job->reason, job->spec, job->plan,
        job->idempotency_key, job->request_digest, job->priority, job->size.slots,
        job->size.train_steps, job->now, job->submitted_by, job->note);
    if (status)
        return status;
    *id = sqlite3_last_insert_rowid(sql_db(c));
    struct store_audit line = {STORE_AUDIT_JOB_SUBMIT, *id, job->submitted_by, job->name, job->now};
    if (sql_run(c, e, NULL,
                "update job set run_dir = 'jobs/' || id, "
                "resumes = json_extract(spec, '$.continues') is not null where id = ?",
                "i", *id) ||
        store_tags_insert(c, *id, job->tags, job->tag_count, e) ||
        store_job_set_size(c, *id, &job->size, e) ||
        store_job_to_end_of_queue(c, *id, job->now, e) || job_insert_after(c, *id, e) ||
        store_waits_for(c, *id, waits, e) || store_audit_write(c, &line, e))
        return -(int)e->code;
    queued.reason = *waits ? waits : job->reason;
    return store_state_apply(c, *id, &queued, e);
}

/* Runs in the transaction that inserts the job, because a sweep that ends finds its jobs through
 * its trials. */
static int job_join_trial(struct sql *c, const char *key, int64_t job_id, struct error *e)
{
    long long sweep, rung, number;
    int changed = 0;

    if (!key || sscanf(key, STORE_TRIAL_KEY, &sweep, &rung, &number) != 3)
        return 0;
    int status = sql_run(c, e, &changed,
                         "update sweep_trial set state = 'submitted', job_id = ?4 "
                         "where sweep_id = ?1 and rung = ?2 and number = ?3 and state = 'waiting' "
                         "and exists (select 1 from sweep where id = ?1 and state = 'running')",
                         "iiii", (int64_t)sweep, (int64_t)rung, (int64_t)number, job_id);
    if (status || changed)
        return status;
    return error_set(e, ERR_CONFLICT, "point %lld of sweep %lld is no longer waiting", number,
                     sweep);
}

struct insertion {
    const struct store_job_new *job;
    int64_t *id;
    bool *existed;
};

static int job_insert_once(struct sql *c, void *context, struct error *e)
{
    struct insertion *i = context;
    const struct store_key key = {i->job->idempotency_key, i->job->request_digest,
                                  i->job->submitted_by};
    int status = job_find_by_key(c, &key, i->id, e);

    *i->existed = status > 0;
    if (status < 0)
        return status;
    if (*i->existed)
        return job_join_trial(c, key.key, *i->id, e);
    if ((i->job->max_queued > 0 &&
         store_usage_check_queued(c, i->job->submitted_by, i->job->max_queued, e)) ||
        job_insert(c, i->job, i->id, e))
        return -(int)e->code;
    return job_join_trial(c, key.key, *i->id, e);
}

int store_job_insert(struct store *s, const struct store_job_new *job, int64_t *id, bool *existed,
                     struct error *e)
{
    struct insertion insertion = {job, id, existed};

    *existed = false;
    return sql_write_grouped(s, job_insert_once, &insertion, e);
}
