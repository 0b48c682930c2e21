#include "daemon/notice/body.h"

#include <math.h>
#include <stdlib.h>

#include "common/job/job_fields.h"
#include "common/json.h"
#include "daemon/store/node.h"
#include "daemon/store/sql.h"

#define EVALS_SHOWN 5

/* ---------------------------------------------------------------- who is concerned */

/* owner, notify, attempt, target: one row at most. */
static int body_read_subject(struct sql *c, sqlite3_stmt *row, struct body_subject *subject,
                             struct error *e)
{
    int found = sql_row(c, row, e);

    *subject = (struct body_subject){.target = NAN};
    if (found <= 0)
        return found;
    const char *list = (const char *)sqlite3_column_text(row, 1);
    subject->owner = sql_text(row, 0);
    subject->notify = list ? json_loads(list, 0, NULL) : NULL;
    subject->attempt = sql_int(row, 2, 0);
    subject->target = sql_double(row, 3);
    sql_done(row);
    return 0;
}

int body_job_subject(struct sql *c, int64_t job_id, struct body_subject *subject, struct error *e)
{
    sqlite3_stmt *row = sql_query(
        c, e,
        "select nullif(" SQL_USER_OF("job.submitted_by") ", ''), "
                                                         "json_extract(spec, '$.notify'), attempt, "
                                                         "json_extract(spec, '$.eval.target_top1') "
                                                         "from job where id = ?",
        "i", job_id);
    return body_read_subject(c, row, subject, e);
}

int body_sweep_subject(struct sql *c, int64_t sweep_id, struct body_subject *subject,
                       struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e,
                                  "select submitted_by, json_extract(document, '$.base.notify'), "
                                  "0, null from sweep where id = ?",
                                  "i", sweep_id);
    return body_read_subject(c, row, subject, e);
}

void body_subject_clear(struct body_subject *subject)
{
    free(subject->owner);
    json_decref(subject->notify);
    *subject = (struct body_subject){.target = NAN};
}

/* ---------------------------------------------------------------- what is told */

static json_t *body_value(sqlite3_stmt *row, int column)
{
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_TEXT:
        return json_text_or_null((const char *)sqlite3_column_text(row, column));
    case SQLITE_INTEGER:
        return json_integer(sqlite3_column_int64(row, column));
    case SQLITE_FLOAT:
        return json_number(sqlite3_column_double(row, column));
    default:
        return json_null();
    }
}

/* A row by the names of its columns, which the query gives by "as" where they are not a table's. */
static json_t *body_row(sqlite3_stmt *row)
{
    json_t *object = json_object();

    for (int i = 0; i < sqlite3_column_count(row); i++)
        json_object_set_new(object, sqlite3_column_name(row, i), body_value(row, i));
    return object;
}

/* The one row of a query, if there is one, as the member key of the body. */
static int body_add_row(struct sql *c, sqlite3_stmt *row, json_t *body, const char *key,
                        struct error *e)
{
    int found = sql_row(c, row, e);

    if (found <= 0)
        return found;
    json_object_set_new(body, key, body_row(row));
    sql_done(row);
    return 0;
}

#define BODY_SILENT(name, column)
#define BODY_NOTICE(name, column)                        ", " column " as " #name
#define BODY_COLUMN(name, storage, column, form, notice) BODY_##notice(name, column)

static int body_add_job(struct sql *c, int64_t job_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row =
        sql_query(c, e, "select id" JOB_FIELDS(BODY_COLUMN) " from job where id = ?", "i", job_id);

    return body_add_row(c, row, body, "job", e);
}

/* The last of the curve, oldest first. */
static int body_add_evals(struct sql *c, int64_t job_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e,
                                  "select step, epoch, top1, loss from eval where job_id = ? "
                                  "order by step desc limit ?",
                                  "ii", job_id, (int64_t)EVALS_SHOWN);
    json_t *evals = json_object_get(body, "evals");
    int status;

    while ((status = sql_row(c, row, e)) > 0)
        json_array_insert_new(evals, 0, body_row(row));
    return status;
}

/* ---------------------------------------------------------------- the rest */

static int body_add_sweep(struct sql *c, int64_t sweep_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row = sql_query(
        c, e,
        "select id, name, state, submitted_by, (select count(*) from sweep_trial where sweep_id = "
        "sweep.id) as trials, (select count(*) from sweep_trial where sweep_id = sweep.id and "
        "state = 'succeeded') as succeeded from sweep where id = ?",
        "i", sweep_id);

    return body_add_row(c, row, body, "sweep", e);
}

int body_make(struct sql *c, const struct body_parts *p, json_t **body, struct error *e)
{
    int status = 0;

    *body =
        json_pack("{s:s, s:o, s:o, s:n, s:[], s:O?, s:n, s:n}", "kind", notice_kind_name(p->kind),
                  "t", json_number(p->t), "reason", json_text_or_null(p->reason), "job", "evals",
                  "event", p->event, "sweep", "node");
    if (!*body)
        return error_set(e, ERR_NO_MEMORY, "no memory for a notice");
    if (p->check)
        json_object_set_new(*body, "node",
                            json_pack("{s:s, s:s?, s:s?}", "name", p->check->node, "kind",
                                      p->check->kind, "partition", p->check->partition));
    if (p->job_id > 0)
        status = body_add_job(c, p->job_id, *body, e);
    if (!status && p->job_id > 0)
        status = body_add_evals(c, p->job_id, *body, e);
    if (!status && p->sweep_id > 0)
        status = body_add_sweep(c, p->sweep_id, *body, e);
    if (status) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}
