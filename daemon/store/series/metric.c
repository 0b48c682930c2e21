#include <math.h>

#include "daemon/store/once.h"
#include "daemon/store/sql.h"
#include "common/json.h"
#include "daemon/store/store.h"

/* NULL columns become JSON null, as NaN has no place in JSON. */
static json_t *metric_number_or_null(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL
               ? json_null()
               : json_number(sqlite3_column_double(row, column));
}

static json_t *metric_read_eval(sqlite3_stmt *row)
{
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:I, s:o}", "step", (json_int_t)sqlite3_column_int64(row, 0),
        "epoch", metric_number_or_null(row, 1), "top1", metric_number_or_null(row, 2), "top5",
        metric_number_or_null(row, 3), "loss", metric_number_or_null(row, 4), "images",
        (json_int_t)sqlite3_column_int64(row, 5), "t", json_number(sqlite3_column_double(row, 6)));
}

int store_eval_list(struct store *s, int64_t job_id, json_t **evals, struct error *e)
{
    return once_json(s, metric_read_eval, evals, e,
                     "select step, epoch, top1, top5, loss, images, t from eval "
                     "where job_id = ? order by step",
                     "i", job_id);
}

int store_jobs_trained_since(struct store *s, double since, int64_t most,
                             struct store_trained *jobs, size_t *count, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e,
                                  "select id, global_batch from "
                                  "(select * from job order by id desc limit ?) "
                                  "where started_at is not null and global_batch > 0 "
                                  "and coalesce(imported_attempts, -1) < attempt "
                                  "and step > 0 and (finished_at is null or finished_at >= ?)",
                                  "id", most, since);
    int status;

    *count = 0;
    while ((status = sql_row(c, row, e)) > 0)
        jobs[(*count)++] =
            (struct store_trained){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    sql_read_end(s, c);
    return status;
}

int store_steps_speed(struct store *s, int64_t job_id, int64_t attempt, double *images_per_sec,
                      struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(
        c, e,
        "select sum(images_per_sec * step_ms) / sum(step_ms) from step_metric where " STORE_OF_JOB
        " and step <= (select step from job where id = ?1) and images_per_sec > 0 and step_ms > 0 "
        "and not exists (select 1 from job_event where job_id = ?1 and attempt = ?2 "
        "and type = 'run_stop' and json_extract(body, '$.images_per_sec') is not null)",
        "ii", job_id, attempt);
    int status = sql_row(c, row, e);

    *images_per_sec = NAN;
    if (status > 0) {
        *images_per_sec = sql_double(row, 0);
        sql_done(row);
        status = 0;
    }
    sql_read_end(s, c);
    return status;
}
