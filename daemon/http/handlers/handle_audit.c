/* Who asked for what, for administrators. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/json_text.h"
#include "daemon/http/routes.h"
#include "daemon/store/audit.h"

static int audit_check_action(const char *text, struct error *e)
{
    char names[256] = "";
    size_t used = 0;

    for (size_t i = 0; text && store_audit_action(i); i++) {
        if (strcmp(text, store_audit_action(i)) == 0)
            return 0;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 store_audit_action(i));
    }
    return text ? error_set(e, ERR_USAGE, "action must be one of %s, not \"%s\"", names, text) : 0;
}

static void audit_line(struct json_text *t, const struct store_audit_line *line)
{
    json_text_open(t, NULL, '{');
    json_text_integer(t, "id", line->id);
    json_text_real(t, "t", line->t);
    json_text_string(t, "by", line->by);
    json_text_string(t, "action", line->action);
    if (line->target > 0)
        json_text_integer(t, "target", line->target);
    else
        json_text_raw(t, "target", NULL);
    json_text_string(t, "detail", line->detail);
    json_text_close(t, '}');
}

int handle_audit(const struct request *q, struct reply *r, struct error *e)
{
    struct store_audit_filter filter = {.by = request_query(q, "by"),
                                        .action = request_query(q, "action")};
    struct store_audit_lines lines;
    int64_t limit;

    if (audit_check_action(filter.action, e) ||
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
    if (more)
        json_text_integer(&text, "next", lines.items[limit - 1].id);
    else
        json_text_raw(&text, "next", NULL);
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
