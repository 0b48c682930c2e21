#include "daemon/notice/raise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_fields.h"
#include "common/json.h"
#include "common/notify/target.h"
#include "common/xalloc.h"
#include "daemon/notice/outbox.h"
#include "daemon/store/job_change.h"
#include "daemon/store/node.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"

#define TOLD_MAX    (1 + NOTICE_RULES_MAX + NOTICE_RULES_FILE_MAX)
#define EVALS_SHOWN 5

/* Who submitted a job or a sweep, and whom its document wants to be notified. */
struct raise_subject {
    char *owner;    /* of a sweep's job that of the sweep; NULL: unknown */
    json_t *notify; /* the list of the document; NULL: none */
    int64_t attempt;
    double target; /* eval.target_top1; NAN: none */
};

/* From a row of owner, notify, attempt and target; empty if there is none. */
static int raise_read_subject(struct sql *c, sqlite3_stmt *row, struct raise_subject *subject,
                              struct error *e)
{
    int found = sql_row(c, row, e);

    *subject = (struct raise_subject){.target = NAN};
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

static int raise_job_subject(struct sql *c, int64_t job_id, struct raise_subject *subject,
                             struct error *e)
{
    sqlite3_stmt *row = sql_query(
        c, e,
        "select nullif(" SQL_USER_OF("job.submitted_by") ", ''), "
                                                         "json_extract(spec, '$.notify'), attempt, "
                                                         "json_extract(spec, '$.eval.target_top1') "
                                                         "from job where id = ?",
        "i", job_id);
    return raise_read_subject(c, row, subject, e);
}

static int raise_sweep_subject(struct sql *c, int64_t sweep_id, struct raise_subject *subject,
                               struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e,
                                  "select submitted_by, json_extract(document, '$.base.notify'), "
                                  "0, null from sweep where id = ?",
                                  "i", sweep_id);
    return raise_read_subject(c, row, subject, e);
}

static json_t *raise_value(sqlite3_stmt *row, int column)
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

static json_t *raise_row(sqlite3_stmt *row)
{
    json_t *object = json_object();

    for (int i = 0; i < sqlite3_column_count(row); i++)
        json_object_set_new(object, sqlite3_column_name(row, i), raise_value(row, i));
    return object;
}

static int raise_add_row(struct sql *c, sqlite3_stmt *row, json_t *body, const char *key,
                         struct error *e)
{
    int found = sql_row(c, row, e);

    if (found <= 0)
        return found;
    json_object_set_new(body, key, raise_row(row));
    sql_done(row);
    return 0;
}

#define BODY_SILENT(name, column)
#define BODY_NOTICE(name, column)                        ", " column " as " #name
#define BODY_COLUMN(name, storage, column, form, notice) BODY_##notice(name, column)

static int raise_add_job(struct sql *c, int64_t job_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row =
        sql_query(c, e, "select id" JOB_FIELDS(BODY_COLUMN) " from job where id = ?", "i", job_id);

    return raise_add_row(c, row, body, "job", e);
}

static int raise_add_evals(struct sql *c, int64_t job_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e,
                                  "select step, epoch, top1, loss from eval where job_id = ? "
                                  "order by step desc limit ?",
                                  "ii", job_id, (int64_t)EVALS_SHOWN);
    json_t *evals = json_object_get(body, "evals");
    int status;

    while ((status = sql_row(c, row, e)) > 0)
        json_array_insert_new(evals, 0, raise_row(row));
    return status;
}

struct raise_parts {
    enum notice_kind kind;
    double t;
    const char *reason;       /* NULL: none */
    int64_t job_id, sweep_id; /* 0: none */
    const json_t *event;
    const struct store_node_check *check;
};

static int raise_add_sweep(struct sql *c, int64_t sweep_id, json_t *body, struct error *e)
{
    sqlite3_stmt *row = sql_query(
        c, e,
        "select id, name, state, submitted_by, (select count(*) from sweep_trial where sweep_id = "
        "sweep.id) as trials, (select count(*) from sweep_trial where sweep_id = sweep.id and "
        "state = 'succeeded') as succeeded from sweep where id = ?",
        "i", sweep_id);

    return raise_add_row(c, row, body, "sweep", e);
}

static int raise_make_body(struct sql *c, const struct raise_parts *p, json_t **body,
                           struct error *e)
{
    int status = 0;

    *body = must_alloc(json_pack("{s:s, s:o, s:o, s:n, s:[], s:O?, s:n, s:n}", "kind",
                                 notice_kind_name(p->kind), "t", json_number(p->t), "reason",
                                 json_text_or_null(p->reason), "job", "evals", "event", p->event,
                                 "sweep", "node"));
    if (p->check)
        json_object_set_new(*body, "node",
                            json_pack("{s:s, s:s?, s:s?}", "name", p->check->node, "kind",
                                      p->check->kind, "partition", p->check->partition));
    if (p->job_id > 0)
        status = raise_add_job(c, p->job_id, *body, e);
    if (!status && p->job_id > 0)
        status = raise_add_evals(c, p->job_id, *body, e);
    if (!status && p->sweep_id > 0)
        status = raise_add_sweep(c, p->sweep_id, *body, e);
    if (status) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}

struct raising {
    struct sql *c;
    const char *uuid;
    const struct notice_settings *settings;
    struct raise_subject subject;
    struct raise_parts parts;
    const struct notice_rule *tell; /* by a failure rule; NULL: none */
    char key[128];                  /* identifies the fact: the same if it is raised again */
    json_t *body;                   /* NULL: not made yet */
    int *raised;
};

/* A target gets one notice, however many rules name it. */
static bool raise_has_told(const struct notice_rule *rule, const struct notice_rule *const *told,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (told[i]->format == rule->format && strcmp(told[i]->to, rule->to) == 0)
            return true;
    return false;
}

static int raise_add(struct raising *r, const struct notice_rule *rule, bool by_rule,
                     struct error *e)
{
    struct outbox_new n = {
        .kind = r->parts.kind,
        .format = rule->format,
        .by_rule = by_rule,
        .target = rule->to,
        .owner = r->subject.owner,
        .node = r->parts.check ? r->parts.check->node : NULL,
        .key = r->key,
        .job_id = r->parts.job_id,
        .sweep_id = r->parts.sweep_id,
        .t = r->parts.t,
    };

    if (!r->body && raise_make_body(r->c, &r->parts, &r->body, e))
        return -(int)e->code;
    n.body = r->body;
    int added = outbox_add(r->c, r->uuid, &n, NULL, e);
    *r->raised += added > 0;
    return added < 0 ? added : 0;
}

/* Checked again: the database may have been changed by others. */
static void raise_read_own(const json_t *list, struct notice_rules *own)
{
    struct problems problems = {0};

    if (json_array_size(list) > 0 && notice_rules_check(list, "", &problems))
        notice_rules_read(list, own);
    problems_clear(&problems);
}

static int raise_to_all(struct raising *r, struct error *e)
{
    const struct notice_admin_rules *rules = &r->settings->rules;
    const struct notice_rule *told[TOLD_MAX];
    struct notice_rules own = {0};
    size_t count = 0;
    int status = 0;

    if (r->tell) {
        told[count++] = r->tell;
        status = raise_add(r, r->tell, true, e);
    }
    raise_read_own(r->subject.notify, &own);
    for (size_t i = 0; i < own.count + rules->count && !status; i++) {
        const struct notice_admin_rule *admin = i < own.count ? NULL : &rules->items[i - own.count];
        const struct notice_rule *rule = admin ? &admin->rule : &own.at[i];
        if (!(rule->kinds & NOTICE_BIT(r->parts.kind)) || raise_has_told(rule, told, count) ||
            (admin && !notice_admin_rule_is_for(admin, r->subject.owner)))
            continue;
        told[count++] = rule;
        status = raise_add(r, rule, admin != NULL, e);
    }
    notice_rules_clear(&own);
    json_decref(r->body);
    r->body = NULL;
    return status;
}

static void raise_end(struct raising *r, const struct store_fact *f)
{
    enum job_state to = f->change->to;

    r->parts.kind = to == JOB_SUCCEEDED ? NOTICE_SUCCEEDED
                    : to == JOB_FAILED  ? NOTICE_FAILED
                                        : NOTICE_CANCELLED;
    r->parts.job_id = f->id;
    r->parts.reason = f->change->reason;
    snprintf(r->key, sizeof r->key, "job %lld attempt %lld at %.6f", (long long)f->id,
             (long long)r->subject.attempt, f->t);
}

static void raise_failure(struct raising *r, const struct store_fact *f)
{
    r->parts.kind = NOTICE_ATTEMPT_FAILED;
    r->parts.job_id = f->id;
    r->parts.event = f->body;
    r->parts.reason = json_get_text(f->body, "reason", NULL);
    r->tell = f->tell;
    snprintf(r->key, sizeof r->key, "job %lld attempt %lld", (long long)f->id,
             (long long)f->attempt);
}

/* false: it makes no notice. */
static bool raise_event(struct raising *r, const struct store_fact *f)
{
    r->parts.job_id = f->id;
    r->parts.event = f->body;
    r->parts.reason = json_get_text(f->body, "message", NULL);
    snprintf(r->key, sizeof r->key, "job %lld attempt %lld", (long long)f->id,
             (long long)f->attempt);
    if (f->type == EVENT_STRAGGLER) {
        r->parts.kind = NOTICE_STRAGGLER;
        return true;
    }
    if (f->type == EVENT_WARNING) {
        r->parts.kind = NOTICE_STALLED;
        return json_object_get(f->body, "stalled_seconds") != NULL;
    }
    r->parts.kind = NOTICE_TARGET_MET;
    snprintf(r->key, sizeof r->key, "job %lld target %.9g", (long long)f->id, r->subject.target);
    return json_get_number(f->body, "top1", -1) >= r->subject.target; /* false for NAN */
}

static void raise_node(struct raising *r, const struct store_fact *f)
{
    r->parts.kind = NOTICE_NODE_DRAINED;
    r->parts.job_id = f->id;
    r->parts.check = f->check;
    r->parts.reason = f->check->reason;
    snprintf(r->key, sizeof r->key, "node %.80s at %.6f", f->check->node, f->t);
}

static void raise_sweep(struct raising *r, const struct store_fact *f)
{
    r->parts.kind = NOTICE_SWEEP_DONE;
    r->parts.sweep_id = f->id;
    snprintf(r->key, sizeof r->key, "sweep %lld", (long long)f->id);
}

int raise_fact(struct sql *c, const char *uuid, const struct notice_settings *settings,
               const struct store_fact *f, int *raised, struct error *e)
{
    struct raising r = {
        .c = c, .uuid = uuid, .settings = settings, .raised = raised, .parts = {.t = f->t}};
    int status = f->what == STORE_FACT_SWEEP ? raise_sweep_subject(c, f->id, &r.subject, e)
                                             : raise_job_subject(c, f->id, &r.subject, e);
    bool told = true;

    if (status)
        return status;
    if (f->what == STORE_FACT_END)
        raise_end(&r, f);
    else if (f->what == STORE_FACT_FAILURE)
        raise_failure(&r, f);
    else if (f->what == STORE_FACT_EVENT)
        told = raise_event(&r, f);
    else if (f->what == STORE_FACT_SWEEP)
        raise_sweep(&r, f);
    else
        raise_node(&r, f);
    if (told)
        status = raise_to_all(&r, e);
    free(r.subject.owner);
    json_decref(r.subject.notify);
    return status;
}
