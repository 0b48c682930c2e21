#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/sql.h"
#include "daemon/store/store.h"

/* NULL columns become JSON null, as NaN has no place in JSON. */
static json_t *number_or_null(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL
               ? json_null()
               : json_real(sqlite3_column_double(row, column));
}

static json_t *read_eval(sqlite3_stmt *row)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:I, s:f}", "step",
                     (json_int_t)sqlite3_column_int64(row, 0), "epoch", number_or_null(row, 1),
                     "top1", number_or_null(row, 2), "top5", number_or_null(row, 3), "loss",
                     number_or_null(row, 4), "images", (json_int_t)sqlite3_column_int64(row, 5),
                     "t", sqlite3_column_double(row, 6));
}

int store_eval_list(struct store *s, int64_t job_id, json_t **evals, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e,
                                  "select step, epoch, top1, top5, loss, images, t from eval "
                                  "where job_id = ? order by step",
                                  "i", job_id);
    int status = row ? 1 : -(int)ERR_INTERNAL;

    *evals = json_array();
    while (status > 0 && (status = sql_row(c, row, e)) > 0)
        json_array_append_new(*evals, read_eval(row));
    sql_read_end(s, c);
    if (status) {
        json_decref(*evals);
        *evals = NULL;
    }
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int store_speed(struct store *s, const struct store_speed_query *query,
                double *images_per_second_per_worker, struct error *e)
{
    double speeds[5];
    int count = 0;
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(
        c, e,
        "select images_per_sec / (json_extract(spec, '$.cluster.nodes') * "
        "json_extract(spec, '$.cluster.workers_per_node')) from job "
        "where state = 'succeeded' and json_extract(spec, '$.model.arch') = ?1 "
        "and json_extract(spec, '$.model.image_size') = ?2 "
        "and json_extract(spec, '$.precision') = ?3 "
        "and json_extract(spec, '$.cluster.threads_per_worker') = ?4 "
        "and json_extract(spec, '$.mode') = 'train' and images_per_sec > 0 "
        "order by id desc limit 5",
        "sisi", query->arch, query->image_size, query->precision, query->threads_per_worker);
    int status = row ? 1 : -(int)ERR_INTERNAL;

    while (status > 0 && (status = sql_row(c, row, e)) > 0)
        speeds[count++] = sqlite3_column_double(row, 0);
    sql_read_end(s, c);
    qsort(speeds, (size_t)count, sizeof speeds[0], by_value);
    *images_per_second_per_worker = count ? speeds[count / 2] : 0;
    return status;
}
