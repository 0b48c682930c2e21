#include "daemon/store/event.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "daemon/store/job_row.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

/* Returns the text without seq, t and type, which have their own columns, and without the cells of
 * a confusion matrix, which have a table. The caller frees it. */
static char *event_own_fields(const json_t *body)
{
    json_t *own = body ? json_copy((json_t *)body) : json_object();
    json_object_del(own, "seq");
    json_object_del(own, "t");
    json_object_del(own, "type");
    json_object_del(own, "cells");
    char *text = must_alloc(json_dumps(own, JSON_COMPACT | JSON_REAL_PRECISION(12)));
    json_decref(own);
    return text;
}

int event_insert_text(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const char *fields, int *inserted, struct error *e)
{
    return sql_run(c, e, inserted,
                   "insert into job_event (job_id, attempt, seq, t, type, body) "
                   "select id, ?2, ?3, ?4, ?5, ?6 from job where id = ?1 "
                   "on conflict (job_id, attempt, seq) do nothing",
                   "iindss", job_id, attempt, seq, t, type, fields);
}

int event_insert_body(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const json_t *body, int *inserted, struct error *e)
{
    char *fields = event_own_fields(body);
    int status = event_insert_text(c, job_id, attempt, seq, t, type, fields, inserted, e);
    free(fields);
    return status;
}

int store_event_state(struct sql *c, int64_t job_id, const struct store_state_change *change,
                      struct error *e)
{
    json_t *body = json_pack("{s:s, s:s*, s:s*}", "state", job_state_name(change->to), "reason",
                             change->reason, "by", change->by);
    char *fields = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    int status = sql_run(c, e, NULL,
                         "insert into job_event (job_id, attempt, t, type, body) "
                         "select id, attempt, ?2, 'state', ?3 from job where id = ?1",
                         "ids", job_id, change->now, fields);
    free(fields);
    return status;
}

int event_call_hook(struct sql *c, const struct store_fact *of, struct error *e)
{
    struct store_fact fact = *of;

    fact.what = STORE_FACT_EVENT;
    return store_call_hook(c, &fact, e);
}

int store_event_insert(struct sql *c, int64_t job_id, int64_t attempt, const char *type,
                       const json_t *fields, double now, struct error *e)
{
    struct store_fact fact = {
        .id = job_id, .attempt = attempt, .type = event_type_of(type), .body = fields, .t = now};
    int inserted;
    int status = event_insert_body(c, job_id, attempt, -1, now, type, fields, &inserted, e);

    if (!status && !inserted)
        status = error_set(e, ERR_NOT_FOUND, "there is no job %lld", (long long)job_id);
    return status || fact.type != EVENT_WARNING ? status : event_call_hook(c, &fact, e);
}

int store_event_of_attempt(struct sql *c, int64_t job_id, const char *type, const json_t *fields,
                           double now, struct error *e)
{
    char *text = event_own_fields(fields);
    int status = sql_run(c, e, NULL,
                         "insert into job_event (job_id, attempt, t, type, body) "
                         "select id, attempt, ?2, ?3, ?4 from job where id = ?1",
                         "idss", job_id, now, type, text);
    free(text);
    return status;
}

int store_event_add(struct store *s, int64_t job_id, int64_t attempt, const char *type,
                    const json_t *fields, double now, struct error *e)
{
    return sql_transaction(s, false, c, e,
                           store_event_insert(c, job_id, attempt, type, fields, now, e));
}

#define EVENTS "select id, job_id, attempt, t, type, body from job_event "
#define NO_STEPS                                                                                   \
    EVENTS "indexed by job_event_of_kind where " STORE_OF_JOB " and id > ? and type <> 'step' "
#define OF_TYPES "and instr(',' || ? || ',', ',' || type || ',') "

static bool event_read_steps_wanted(const char *types)
{
    for (; *types; types += strcspn(types, ","), types += *types == ',')
        if (strcspn(types, ",") == 4 && strncmp(types, "step", 4) == 0)
            return true;
    return false;
}

static sqlite3_stmt *event_read_select(struct sql *c, const struct store_event_range *range,
                                       struct error *e)
{
    int64_t job_id = range->job_id, after = range->after;
    int64_t limit = range->limit > 0 ? range->limit : -1;

    /* Excludes the steps of imported runs, which are inserted all at once and are not live. */
    if (job_id == STORE_ALL_JOBS)
        return sql_query(c, e,
                         "select job_event.id, job_id, job_event.attempt, t, type, body "
                         "from job_event cross join job on job.id = job_id "
                         "where job_event.id > ? and (type <> 'step' or "
                         "job_event.attempt > coalesce(imported_attempts, -1)) "
                         "order by job_event.id limit ?",
                         "ii", after, limit);
    if (range->types && !event_read_steps_wanted(range->types))
        return sql_query(c, e, NO_STEPS OF_TYPES "order by id limit ?", "iisi", job_id, after,
                         range->types, limit);
    if (range->types)
        return sql_query(c, e,
                         EVENTS "where " STORE_OF_JOB " and id > ? " OF_TYPES "order by id limit ?",
                         "iisi", job_id, after, range->types, limit);
    if (range->without_steps)
        return sql_query(c, e, NO_STEPS "order by id limit ?", "iii", job_id, after, limit);
    return sql_query(c, e, EVENTS "where " STORE_OF_JOB " and id > ? order by id limit ?", "iii",
                     job_id, after, limit);
}

static struct store_event_row event_of(sqlite3_stmt *row)
{
    return (struct store_event_row){
        .id = sqlite3_column_int64(row, 0),
        .job_id = sqlite3_column_int64(row, 1),
        .attempt = sqlite3_column_int64(row, 2),
        .t = sqlite3_column_double(row, 3),
        .type = (const char *)sqlite3_column_text(row, 4),
        .body = (const char *)sqlite3_column_text(row, 5),
    };
}

int store_event_each(struct store *s, const struct store_event_range *range,
                     store_event_visit *visit, void *context, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = event_read_select(c, range, e);
    int64_t last = range->after;
    int status;

    while ((status = sql_row(c, row, e)) > 0) {
        struct store_event_row event = event_of(row);
        assert_always(event.id > last);
        last = event.id;
        if (!visit(context, &event)) {
            sql_done(row);
            status = 0;
            break;
        }
    }
    sql_read_end(s, c);
    return status;
}

json_t *store_event_json(const struct store_event_row *row)
{
    json_t *event = json_pack("{s:I, s:I, s:I, s:o, s:s}", "id", (json_int_t)row->id, "job",
                              (json_int_t)row->job_id, "attempt", (json_int_t)row->attempt, "t",
                              json_number(row->t), "type", row->type);
    json_t *own = json_loads(row->body, 0, NULL);

    json_object_update_missing(event, own);
    json_decref(own);
    return event;
}

static bool event_append(void *context, const struct store_event_row *row)
{
    json_array_append_new(context, store_event_json(row));
    return true;
}

int store_event_list(struct store *s, const struct store_event_range *range, json_t **events,
                     struct error *e)
{
    *events = json_array();
    int status = store_event_each(s, range, event_append, *events, e);
    if (status) {
        json_decref(*events);
        *events = NULL;
    }
    return status;
}

int store_event_newest(struct store *s, int64_t *id, struct error *e)
{
    return once_get(s, e, "select coalesce(max(id), 0) from job_event", ":i", id);
}

int store_event_steps_spread(struct store *s, int64_t job_id, int64_t max, store_event_visit *visit,
                             void *context, struct error *e)
{
    int64_t first, last, taken = -1;
    struct sql *c = sql_read_begin(s);
    int status = sql_one(
        c, e,
        "select coalesce((select id from job_event where " STORE_OF_JOB " and type = 'step' "
        "order by id limit 1), 0), coalesce((select id from job_event where " STORE_OF_JOB " "
        "and type = 'step' order by id desc limit 1), -1)",
        "i:ii", job_id, &first, &last);

    status = status < 0 ? status : 0;
    for (int64_t i = 0; status == 0 && first <= last && i < max; i++) {
        int64_t from =
            max > 1 ? first + (int64_t)((double)(last - first) * (double)i / (double)(max - 1))
                    : first;
        sqlite3_stmt *row = sql_query(
            c, e, EVENTS "where " STORE_OF_JOB " and id >= ? and type = 'step' order by id limit 1",
            "ii", job_id, from > taken ? from : taken + 1);
        status = sql_row(c, row, e);
        if (status <= 0)
            break; /* no step after this id */
        struct store_event_row event = event_of(row);
        taken = event.id;
        bool more = visit(context, &event);
        sql_done(row);
        status = 0;
        if (!more)
            break;
    }
    sql_read_end(s, c);
    return status;
}

int store_gradients_of(struct store *s, const struct store_job *job, char **body, struct error *e)
{
    return once_get(s, e,
                    "select body from job_event where job_id = ? and attempt = ? "
                    "and seq between 1 and 1000 and type = 'gradients' limit 1",
                    "ii:s", job->id, job->attempt, body);
}
