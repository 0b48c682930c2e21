/* The writing of single events, inside the caller's transaction. */
#include "daemon/store/series/event_insert.h"

#include "common/xalloc.h"

#include <stdlib.h>

/* The type's own fields: seq, t and type have columns of their own. The caller frees it. */
static char *event_own_fields(const json_t *body)
{
    json_t *own = body ? json_copy((json_t *)body) : json_object();
    json_object_del(own, "seq");
    json_object_del(own, "t");
    json_object_del(own, "type");
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

int event_tell(struct sql *c, const struct store_fact *of, struct error *e)
{
    struct store_fact fact = *of;

    fact.what = STORE_FACT_EVENT;
    return store_tell(c, &fact, e);
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
    return status || fact.type != EVENT_WARNING ? status : event_tell(c, &fact, e);
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
