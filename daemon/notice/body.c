#include "daemon/notice/body.h"

#include <math.h>
#include <stdlib.h>

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

/* ---------------------------------------------------------------- a job */

static json_t *body_text(sqlite3_stmt *row, int column)
{
    return json_text_or_null((const char *)sqlite3_column_text(row, column));
}

static json_t *body_number(sqlite3_stmt *row, int column)
{
    return json_number_or_null(sql_double(row, column));
}

static json_t *body_integer(sqlite3_stmt *row, int column)
{
    return json_integer_or_null(sqlite3_column_type(row, column) != SQLITE_NULL,
                                sqlite3_column_int64(row, column));
}

/* The columns of the table job that are told, by their names in the API: 's' text, 'i' integer, 'd'
 * number. */
static const struct {
    const char *name;
    char kind;
} job_columns[] = {
    {"id",             'i'},
    {"name",           's'},
    {"state",          's'},
    {"reason",         's'},
    {"submitted_by",   's'},
    {"attempt",        'i'},
    {"created_at",     'd'},
    {"started_at",     'd'},
    {"finished_at",    'd'},
    {"step",           'i'},
    {"train_steps",    'i'},
    {"epoch",          'd'},
    {"loss",           'd'},
    {"images_per_sec", 'd'},
    {"ttt_seconds",    'd'},
    {"top1",           'd'},
    {"top5",           'd'},
};

static int body_add_job(struct sql *c, int64_t job_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row = sql_query(
        c, e,
        "select id, name, state, reason, submitted_by, attempt, created_at, started_at, "
        "finished_at, step, train_steps, epoch, loss, images_per_sec, ttt_seconds, top1, top5 "
        "from job where id = ?",
        "i", job_id);
    int found = sql_row(c, row, e);

    if (found <= 0)
        return found;
    json_t *job = json_object();
    for (int i = 0; i < (int)(sizeof job_columns / sizeof job_columns[0]); i++)
        json_object_set_new(job, job_columns[i].name,
                            job_columns[i].kind == 's'   ? body_text(row, i)
                            : job_columns[i].kind == 'i' ? body_integer(row, i)
                                                         : body_number(row, i));
    sql_done(row);
    json_object_set_new(body, "job", job);
    return 0;
}

/* The last of the curve, oldest first. */
static int body_add_evals(struct sql *c, int64_t job_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e,
                                  "select step, epoch, top1, loss from eval where job_id = ? "
                                  "order by step desc limit ?",
                                  "ii", job_id, (int64_t)EVALS_SHOWN);
    json_t *evals = json_object_get(body, "evals");
    int status = row ? 1 : -(int)e->code;

    while (status > 0 && (status = sql_row(c, row, e)) > 0)
        json_array_insert_new(evals, 0,
                              json_pack("{s:o, s:o, s:o, s:o}", "step", body_integer(row, 0),
                                        "epoch", body_number(row, 1), "top1", body_number(row, 2),
                                        "loss", body_number(row, 3)));
    return status;
}

/* ---------------------------------------------------------------- the rest */

static int body_add_sweep(struct sql *c, int64_t sweep_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row = sql_query(
        c, e,
        "select id, name, state, submitted_by, (select count(*) from sweep_trial where sweep_id = "
        "sweep.id), (select count(*) from sweep_trial where sweep_id = sweep.id and state = "
        "'succeeded') from sweep where id = ?",
        "i", sweep_id);
    int found = sql_row(c, row, e);

    if (found <= 0)
        return found;
    json_object_set_new(body, "sweep",
                        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "id", body_integer(row, 0),
                                  "name", body_text(row, 1), "state", body_text(row, 2),
                                  "submitted_by", body_text(row, 3), "trials", body_integer(row, 4),
                                  "succeeded", body_integer(row, 5)));
    sql_done(row);
    return 0;
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
