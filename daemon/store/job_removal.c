#include "daemon/store/job_removal.h"

#include "common/clock.h"
#include "daemon/store/job_change.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

static int job_delete(struct sql *c, int64_t id, struct error *e)
{
    enum job_state state;
    int status = store_job_state_now(c, id, &state, e);

    if (status)
        return status;
    if (!job_state_is_final(state))
        return error_set(e, ERR_CONFLICT, "job %lld is %s: cancel it first", (long long)id,
                         job_state_name(state));
    status = sql_run(c, e, NULL, "insert into removal (job_id) values (?)", "i", id);
    return status ? status : sql_run(c, e, NULL, "delete from job where id = ?", "i", id);
}

int store_job_delete(struct store *s, int64_t id, struct error *e)
{
    return sql_transaction(s, true, c, e, job_delete(c, id, e));
}

int store_jobs_beyond(struct store *s, int64_t keep, int64_t *ids, size_t max, size_t *count,
                      struct error *e)
{
    return once_integers(s, ids, count, e,
                         "select id from job where state in ('succeeded', 'failed', "
                         "'cancelled') and coalesce(imported_attempts, -1) < attempt "
                         "and id not in (select job_id from sweep_trial where "
                         "state = 'submitted' and job_id is not null) "
                         "order by finished_at desc, id desc "
                         "limit ?1 offset ?2",
                         "ii", (int64_t)max, keep);
}

#define ROWS_AT_A_TIME 100 /* between two checks of the clock; takes about a millisecond */

/* Deletes from the tables without a foreign key (0031_removal.sql), one after the other. */
static int removal_delete_rows(struct sql *c, int64_t job_id, int *deleted, struct error *e)
{
    static const char *const from[] = {
        "delete from job_event where id in "
        "(select id from job_event where job_id = ?1 order by id limit ?2)",
        "delete from step_metric where job_id = ?1 and step in "
        "(select step from step_metric where job_id = ?1 order by step limit ?2)",
        "delete from metric_bucket where job_id = ?1 and (level, bucket) in "
        "(select level, bucket from metric_bucket where job_id = ?1 order by level, bucket "
        "limit ?2)",
        "delete from confusion where job_id = ?1 and (step, label, predicted) in "
        "(select step, label, predicted from confusion where job_id = ?1 limit ?2)",
    };
    int status = 0;

    *deleted = 0;
    for (size_t i = 0; !status && !*deleted && i < sizeof from / sizeof from[0]; i++)
        status = sql_run(c, e, deleted, from[i], "ii", job_id, (int64_t)ROWS_AT_A_TIME);
    return status;
}

int store_removal_go_on(struct store *s, double seconds, int64_t *id, bool *rows_left,
                        struct error *e)
{
    struct sql *c = sql_write_begin(s, false, e);

    if (!c)
        return -(int)e->code;
    double until = clock_monotonic() + seconds;
    int status = sql_one(c, e, "select job_id from removal order by job_id limit 1", ":i", id);
    int deleted = status > 0;
    if (status > 0)
        do
            status = removal_delete_rows(c, *id, &deleted, e);
        while (!status && deleted && clock_monotonic() < until);
    *rows_left = deleted > 0;
    return sql_write_end(s, c, status < 0 ? status : 0, e);
}

int store_removal_set(struct store *s, int64_t job_id, bool left, struct error *e)
{
    return once_run(s, false, NULL, e,
                    left ? "insert or ignore into removal (job_id) values (?)"
                         : "delete from removal where job_id = ?",
                    "i", job_id);
}

int store_leftover_set(struct store *s, int64_t job_id, bool left, struct error *e)
{
    return once_run(s, false, NULL, e,
                    left ? "insert or ignore into leftover select id from job where id = ?"
                         : "delete from leftover where job_id = ?",
                    "i", job_id);
}

int store_leftover_list(struct store *s, int64_t *ids, size_t max, size_t *count, struct error *e)
{
    return once_integers(s, ids, count, e, "select job_id from leftover order by job_id limit ?",
                         "i", (int64_t)max);
}
