#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/notify/rule.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/access/job_policy.h"
#include "daemon/http/json_text.h"
#include "daemon/http/routes.h"
#include "daemon/job/job.h"

static int notices_check_state(const char *state, struct error *e)
{
    for (size_t i = 0; state && outbox_state_name(i); i++)
        if (strcmp(state, outbox_state_name(i)) == 0)
            return 0;
    return state ? error_set(e, ERR_USAGE, "state must be waiting, delivered or failed, not \"%s\"",
                             state)
                 : 0;
}

/* A caller who may read a job sees all its notices; without a job, callers see their own. */
static void notices_limit_to(const struct request *q, struct outbox_filter *f)
{
    f->everything = q->rights & RIGHT(ROLE_ADMIN);
    f->of_anybody = f->job_id || f->sweep_id || q->rights & RIGHT(ROLE_OPERATOR);
    f->owner = request_by(q);
}

static void notices_member(struct json_text *t, const struct outbox_notice *n)
{
    json_text_open(t, NULL, '{');
    json_text_integer(t, "id", n->id);
    json_text_string(t, "notice", n->uid);
    json_text_real(t, "t", n->t);
    json_text_string(t, "kind", notice_kind_name(n->kind));
    json_text_string(t, "to", n->target);
    json_text_string(t, "format", notice_format_name(n->format));
    json_text_value(t, "rule", json_boolean(n->by_rule));
    json_text_positive(t, "job", n->job_id);
    json_text_positive(t, "sweep", n->sweep_id);
    json_text_string(t, "node", n->node);
    json_text_string(t, "state", outbox_state_name(n->state));
    json_text_integer(t, "attempts", n->attempts);
    json_text_time(t, "next_at", n->state == OUTBOX_WAITING ? n->next_at : 0);
    json_text_time(t, "done_at", n->done_at);
    json_text_string(t, "error", n->error);
    json_text_close(t, '}');
}

int handle_notice_list(const struct request *q, struct reply *r, struct error *e)
{
    struct outbox_filter filter = {.state = request_query(q, "state")};
    struct outbox_notices list;
    int64_t limit;

    if (notices_check_state(filter.state, e) ||
        request_query_int(q, "after", 1, INT64_MAX, 0, &filter.after, e) ||
        request_query_int(q, "limit", 1, 1000, 50, &limit, e) ||
        request_query_int(q, "job", 1, INT64_MAX, 0, &filter.job_id, e) ||
        request_query_int(q, "sweep", 1, INT64_MAX, 0, &filter.sweep_id, e) ||
        request_query_int(q, "id", 1, INT64_MAX, 0, &filter.id, e))
        return -(int)e->code;
    notices_limit_to(q, &filter);
    filter.limit = limit + 1; /* one more, to find out whether there is another page */
    if (outbox_list(q->app->store, &filter, &list, e))
        return -(int)e->code;
    bool more = list.count > (size_t)limit;
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    json_text_open(&text, "notices", '[');
    for (size_t i = 0; i < list.count - more; i++)
        notices_member(&text, &list.items[i]);
    json_text_close(&text, ']');
    json_text_positive(&text, "next", more ? list.items[limit - 1].id : 0);
    json_text_close(&text, '}');
    outbox_notices_clear(&list);
    return reply_json_text(r, 200, &text, e);
}

static int notices_send_test(const struct request *q, const json_t *body, struct reply *r,
                             struct error *e)
{
    struct outbox_filter filter = {.limit = 1, .everything = true};
    struct notice_rule rule = notice_rule_read(body);
    struct outbox_notices list;
    bool trusted = q->rights & RIGHT(ROLE_OPERATOR);
    int wait = 0;
    int status = notices_test(q->app->notices, rule.to, rule.format, request_by(q), &filter.id,
                              trusted ? NULL : &wait, e);

    if (wait)
        reply_header(r, "Retry-After", "%d", wait);
    if (!status) {
        log_info("notice %lld: a test, sent by %s", (long long)filter.id,
                 job_requester_name(request_by(q)));
        audit_request(q, STORE_AUDIT_NOTICE_TEST, filter.id, rule.to);
        status = outbox_list(q->app->store, &filter, &list, e);
    }
    free(rule.to);
    if (status)
        return status;
    struct json_text text = JSON_TEXT;
    if (list.count)
        notices_member(&text, &list.items[0]);
    outbox_notices_clear(&list);
    return reply_json_text(r, 202, &text, e);
}

int handle_notice_test(const struct request *q, struct reply *r, struct error *e)
{
    struct problems problems = {0};
    json_t *body = json_document_parse(q->body ? q->body : "", q->body_bytes, e);
    int status;

    if (!body)
        return -(int)e->code;
    notice_rule_check(body, "", NULL, &problems);
    job_policy_check_target(json_get_text(body, "to", ""), "/to", q->config, &problems);
    if (json_object_get(body, "on"))
        problems_add(&problems, "/on", NULL, "is not a key of a test; the keys are to and format");
    if (problems.count)
        status = reply_refusal(r, ERR_INVALID, &problems);
    else
        status = notices_send_test(q, body, r, e);
    problems_clear(&problems);
    json_decref(body);
    return status;
}
