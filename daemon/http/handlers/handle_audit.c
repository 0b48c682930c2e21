/* Who asked for what, for administrators. */
#include "common/clock.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/json_text.h"
#include "daemon/http/routes.h"
#include "daemon/store/audit.h"

static void audit_line(struct json_text *t, const struct store_audit_line *line)
{
    json_text_open(t, NULL, '{');
    json_text_integer(t, "id", line->id);
    json_text_real(t, "t", line->t);
    json_text_string(t, "by", line->by);
    json_text_string(t, "action", line->action);
    json_text_positive(t, "target", line->target);
    json_text_string(t, "detail", line->detail);
    json_text_close(t, '}');
}

int handle_audit(const struct request *q, struct reply *r, struct error *e)
{
    struct store_audit_filter filter = {.by = request_query(q, "by"),
                                        .action = request_query(q, "action")};
    struct store_audit_lines lines;
    int64_t limit;
    size_t action;

    if (request_query_word(q, "action", store_audit_action, &action, e) ||
        request_query_int(q, "after", 1, INT64_MAX, 0, &filter.after, e) ||
        request_query_int(q, "limit", 1, 1000, 50, &limit, e) ||
        request_query_int(q, "target", 1, INT64_MAX, 0, &filter.target, e))
        return -(int)e->code;
    filter.limit = limit + 1; /* is there another page? */
    if (store_audit_list(q->app->store, &filter, &lines, e))
        return -(int)e->code;
    bool more = lines.count > (size_t)limit;
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    json_text_open(&text, "lines", '[');
    for (size_t i = 0; i < lines.count - more; i++)
        audit_line(&text, &lines.items[i]);
    json_text_close(&text, ']');
    json_text_positive(&text, "next", more ? lines.items[limit - 1].id : 0);
    json_text_close(&text, '}');
    store_audit_lines_clear(&lines);
    return reply_json_text(r, 200, &text, e);
}

void audit_request(const struct request *q, enum store_audit_kind action, int64_t target,
                   const char *detail)
{
    struct store_audit line = {action, target, request_by(q), detail, clock_now()};

    store_audit_add(q->app->store, &line);
}
