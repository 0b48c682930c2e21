#include "daemon/notice/raise.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/notify/target.h"
#include "daemon/notice/body.h"
#include "daemon/notice/outbox.h"
#include "daemon/store/job_change.h"
#include "daemon/store/node.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"

#define TOLD_MAX (1 + NOTICE_RULES_MAX + NOTICE_RULES_FILE_MAX)

/* One thing that happened, and those who are told of it. */
struct raising {
    struct sql *c;
    const char *uuid;
    const struct notice_settings *settings;
    struct body_subject subject;
    struct body_parts parts;
    const struct notice_rule *tell; /* by a failure rule; NULL: none */
    char key[128];                  /* what happened: the same when it is told again */
    json_t *body;                   /* NULL: nobody wanted it yet */
    int *raised;
};

/* A target gets a notice once, whatever rules name it. */
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

    if (!r->body && body_make(r->c, &r->parts, &r->body, e))
        return -(int)e->code;
    n.body = r->body;
    int added = outbox_add(r->c, r->uuid, &n, NULL, e);
    *r->raised += added > 0;
    return added < 0 ? added : 0;
}

/* The document was right when it was submitted; a database may hold anything. */
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

/* ---------------------------------------------------------------- what happened */

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

/* false: it is nothing that anybody is told of. */
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
    int status = f->what == STORE_FACT_SWEEP ? body_sweep_subject(c, f->id, &r.subject, e)
                                             : body_job_subject(c, f->id, &r.subject, e);
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
    body_subject_clear(&r.subject);
    return status;
}
