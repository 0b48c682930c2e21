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

#define NOTIFIED_MAX (1 + NOTICE_RULES_MAX + NOTICE_RULES_FILE_MAX)
#define EVALS_SHOWN  5

struct raising {
    struct sql *c;
    const char *uuid;
    const struct notice_settings *settings;
    enum notice_kind kind;
    double t;
    const char *reason;       /* NULL: none */
    int64_t job_id, sweep_id; /* 0: none */
    const json_t *event;
    const struct store_node_check *check;
    char *owner;    /* for a sweep's job, the sweep's owner; NULL: unknown */
    json_t *notify; /* list in the document; NULL: none */
    int64_t attempt;
    double target;                  /* eval.target_top1; NAN: none */
    const struct notice_rule *tell; /* from a failure rule; NULL: none */
    char key[128];                  /* identifies the fact; the same if it is raised again */
    json_t *body;                   /* NULL: not created yet */
    int *raised;
};

static int raise_find_subject(struct raising *r, const struct store_fact *f, struct error *e)
{
    static const char of_job[] = "select nullif(" SQL_USER_OF(
        "job.submitted_by") ", ''), "
                            "json_extract(spec, '$.notify'), attempt, "
                            "json_extract(spec, '$.eval.target_top1') from job where id = ?";
    static const char of_sweep[] = "select submitted_by, json_extract(document, '$.base.notify'), "
                                   "0, null from sweep where id = ?";
    char *list;
    int found = sql_one(r->c, e, f->what == STORE_FACT_SWEEP ? of_sweep : of_job, "i:ssid", f->id,
                        &r->owner, &list, &r->attempt, &r->target);

    r->notify = list ? json_loads(list, 0, NULL) : NULL;
    free(list);
    return found < 0 ? found : 0;
}

/* Converts a row to an object with the column names as keys. */
static json_t *raise_row(sqlite3_stmt *row)
{
    json_t *object = json_object(), *value;

    for (int i = 0; i < sqlite3_column_count(row); i++) {
        switch (sqlite3_column_type(row, i)) {
        case SQLITE_TEXT:
            value = json_text_or_null((const char *)sqlite3_column_text(row, i));
            break;
        case SQLITE_INTEGER:
            value = json_integer(sqlite3_column_int64(row, i));
            break;
        case SQLITE_FLOAT:
            value = json_number(sqlite3_column_double(row, i));
            break;
        default:
            value = json_null();
        }
        json_object_set_new(object, sqlite3_column_name(row, i), value);
    }
    return object;
}

static int raise_add_row(struct raising *r, sqlite3_stmt *row, const char *key, struct error *e)
{
    int found = sql_row(r->c, row, e);

    if (found <= 0)
        return found;
    json_object_set_new(r->body, key, raise_row(row));
    sql_done(row);
    return 0;
}

#define BODY_SILENT(name, column)
#define BODY_NOTICE(name, column)                        ", " column " as " #name
#define BODY_COLUMN(name, storage, column, form, notice) BODY_##notice(name, column)

static int raise_add_job(struct raising *r, struct error *e)
{
    sqlite3_stmt *job = sql_query(
        r->c, e, "select id" JOB_FIELDS(BODY_COLUMN) " from job where id = ?", "i", r->job_id);

    if (raise_add_row(r, job, "job", e))
        return -(int)e->code;
    sqlite3_stmt *row = sql_query(r->c, e,
                                  "select step, epoch, top1, loss from eval where job_id = ? "
                                  "order by step desc limit ?",
                                  "ii", r->job_id, (int64_t)EVALS_SHOWN);
    json_t *evals = json_object_get(r->body, "evals");
    int status;
    while ((status = sql_row(r->c, row, e)) > 0)
        json_array_insert_new(evals, 0, raise_row(row));
    return status;
}

static int raise_make_body(struct raising *r, struct error *e)
{
    r->body = must_alloc(json_pack("{s:s, s:o, s:o, s:n, s:[], s:O?, s:n, s:n}", "kind",
                                   notice_kind_name(r->kind), "t", json_number(r->t), "reason",
                                   json_text_or_null(r->reason), "job", "evals", "event", r->event,
                                   "sweep", "node"));
    if (r->check)
        json_object_set_new(r->body, "node",
                            json_pack("{s:s, s:s?, s:s?}", "name", r->check->node, "kind",
                                      r->check->kind, "partition", r->check->partition));
    if (r->job_id > 0)
        return raise_add_job(r, e);
    if (r->sweep_id <= 0)
        return 0;
    return raise_add_row(
        r,
        sql_query(
            r->c, e,
            "select id, name, state, submitted_by, (select count(*) from sweep_trial where "
            "sweep_id = sweep.id) as trials, (select count(*) from sweep_trial where sweep_id = "
            "sweep.id and state = 'succeeded') as succeeded from sweep where id = ?",
            "i", r->sweep_id),
        "sweep", e);
}

/* A target gets one notice, even if several rules name it. */
static bool raise_has_notified(const struct notice_rule *rule,
                               const struct notice_rule *const *notified, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (notified[i]->format == rule->format && strcmp(notified[i]->to, rule->to) == 0)
            return true;
    return false;
}

static int raise_add(struct raising *r, const struct notice_rule *rule, bool by_rule,
                     struct error *e)
{
    if (!r->body && raise_make_body(r, e))
        return -(int)e->code;
    struct outbox_new n = {
        .kind = r->kind,
        .format = rule->format,
        .by_rule = by_rule,
        .target = rule->to,
        .owner = r->owner,
        .node = r->check ? r->check->node : NULL,
        .key = r->key,
        .job_id = r->job_id,
        .sweep_id = r->sweep_id,
        .t = r->t,
        .body = r->body,
    };
    int added = outbox_add(r->c, r->uuid, &n, NULL, e);

    *r->raised += added > 0;
    return added < 0 ? added : 0;
}

static int raise_to_all(struct raising *r, struct error *e)
{
    const struct notice_admin_rules *rules = &r->settings->rules;
    const struct notice_rule *notified[NOTIFIED_MAX];
    struct notice_rules own = {0};
    struct problems problems = {0};
    size_t count = 0;
    int status = 0;

    if (r->tell) {
        notified[count++] = r->tell;
        status = raise_add(r, r->tell, true, e);
    }
    /* Checked again, because other programs may have changed the database. */
    if (json_array_size(r->notify) > 0 && notice_rules_check(r->notify, "", &problems))
        notice_rules_read(r->notify, &own);
    problems_clear(&problems);
    for (size_t i = 0; i < own.count + rules->count && !status; i++) {
        const struct notice_admin_rule *admin = i < own.count ? NULL : &rules->items[i - own.count];
        const struct notice_rule *rule = admin ? &admin->rule : &own.at[i];
        if (!(rule->kinds & NOTICE_BIT(r->kind)) || raise_has_notified(rule, notified, count) ||
            (admin && !notice_admin_rule_is_for(admin, r->owner)))
            continue;
        notified[count++] = rule;
        status = raise_add(r, rule, admin != NULL, e);
    }
    notice_rules_clear(&own);
    return status;
}

/* Fills what depends on the fact. Returns false if no notice is to be sent. */
static bool raise_read_fact(struct raising *r, const struct store_fact *f)
{
    long long id = f->id, attempt = f->attempt;

    r->job_id = f->what == STORE_FACT_SWEEP ? 0 : f->id;
    snprintf(r->key, sizeof r->key, "job %lld attempt %lld", id, attempt);
    switch (f->what) {
    case STORE_FACT_END:
        r->kind = f->change->to == JOB_SUCCEEDED ? NOTICE_SUCCEEDED
                  : f->change->to == JOB_FAILED  ? NOTICE_FAILED
                                                 : NOTICE_CANCELLED;
        r->reason = f->change->reason;
        snprintf(r->key, sizeof r->key, "job %lld attempt %lld at %.6f", id, (long long)r->attempt,
                 f->t);
        return true;
    case STORE_FACT_FAILURE:
        r->kind = NOTICE_ATTEMPT_FAILED;
        r->event = f->body;
        r->reason = json_get_text(f->body, "reason", NULL);
        r->tell = f->tell;
        return true;
    case STORE_FACT_EVENT:
        r->event = f->body;
        r->reason = json_get_text(f->body, "message", NULL);
        r->kind = f->type == EVENT_STRAGGLER ? NOTICE_STRAGGLER
                  : f->type == EVENT_WARNING ? NOTICE_STALLED
                                             : NOTICE_TARGET_MET;
        if (r->kind == NOTICE_STRAGGLER)
            return true;
        if (r->kind == NOTICE_STALLED)
            return json_object_get(f->body, "stalled_seconds") != NULL;
        snprintf(r->key, sizeof r->key, "job %lld target %.9g", id, r->target);
        return json_get_number(f->body, "top1", -1) >= r->target; /* false for NAN */
    case STORE_FACT_SWEEP:
        r->kind = NOTICE_SWEEP_DONE;
        r->sweep_id = f->id;
        snprintf(r->key, sizeof r->key, "sweep %lld", id);
        return true;
    default:
        r->kind = NOTICE_NODE_DRAINED;
        r->check = f->check;
        r->reason = f->check->reason;
        snprintf(r->key, sizeof r->key, "node %.80s at %.6f", f->check->node, f->t);
        return true;
    }
}

int raise_fact(struct sql *c, const char *uuid, const struct notice_settings *settings,
               const struct store_fact *f, int *raised, struct error *e)
{
    struct raising r = {
        .c = c, .uuid = uuid, .settings = settings, .raised = raised, .t = f->t, .target = NAN};
    int status = raise_find_subject(&r, f, e);

    if (!status && raise_read_fact(&r, f))
        status = raise_to_all(&r, e);
    free(r.owner);
    json_decref(r.notify);
    json_decref(r.body);
    return status;
}
