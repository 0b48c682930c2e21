/* trainctl audit: who asked for what, the newest first. */
#include <curl/curl.h>
#include <limits.h>
#include <stdlib.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/views/human.h"
#include "client/views/table.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"

/* "/v1/audit?limit=50&by=eve": the caller frees it. */
static char *audit_path(const struct cmd_args *args, long limit, long after)
{
    static const char *const filters[] = {"by", "action", "target"};
    struct buffer path = BUFFER((size_t)64 << 10);

    buffer_printf(&path, "/v1/audit?limit=%ld", limit);
    if (after > 0)
        buffer_printf(&path, "&after=%ld", after);
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        const char *value = cmd_value(args, filters[i]);
        char *escaped = value ? curl_easy_escape(NULL, value, 0) : NULL;
        if (escaped)
            buffer_printf(&path, "&%s=%s", filters[i], escaped);
        curl_free(escaped);
    }
    return buffer_take(&path, NULL);
}

static void audit_print(const json_t *answer)
{
    static const char *const headings[] = {"ID", "WHEN", "WHO", "WHAT", "ON", "DETAIL"};
    static const int flags[] = {TABLE_RIGHT, 0, TABLE_TRUNC, 0, TABLE_RIGHT, TABLE_WRAP};
    const json_t *lines = json_object_get(answer, "lines"), *one;
    char text[HUMAN_BYTES];
    size_t i;

    if (json_array_size(lines) == 0) {
        puts("no entry fits");
        return;
    }
    struct libscols_table *table = table_create(1);
    for (size_t c = 0; c < sizeof headings / sizeof headings[0]; c++)
        table_column(table, headings[c], flags[c]);
    json_array_foreach (lines, i, one) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, human_count(text, sizeof text, json_get_integer(one, "id", 0)));
        table_set(line, 1,
                  human_ago(text, sizeof text, clock_now() - json_get_number(one, "t", 0)));
        table_set(line, 2, json_get_text(one, "by", "-"));
        table_set(line, 3, json_get_text(one, "action", ""));
        snprintf(text, sizeof text, "%lld", json_get_integer(one, "target", 0));
        table_set(line, 4, json_get_integer(one, "target", 0) > 0 ? text : "-");
        table_set(line, 5, json_get_text(one, "detail", ""));
    }
    table_finish(table);
    if (json_is_integer(json_object_get(answer, "next")))
        fprintf(stderr, "the next page: --after %lld\n", json_get_integer(answer, "next", 0));
}

static int cmd_audit(const struct cmd_args *args)
{
    struct error e;
    json_t *answer;
    long limit = 50, after = 0, target;

    const char *count = cmd_value(args, "limit"), *page = cmd_value(args, "after");
    const char *on = cmd_value(args, "target");
    if ((count && cmd_number(count, "limit", 1, 1000, &limit, &e) < 0) ||
        (page && cmd_number(page, "after", 1, LONG_MAX, &after, &e) < 0) ||
        (on && cmd_number(on, "target", 1, LONG_MAX, &target, &e) < 0))
        return cmd_fail(&e);
    char *path = audit_path(args, limit, after);
    int code =
        path ? api_get(path, &answer, &e) : error_set(&e, ERR_USAGE, "the words are too long");
    free(path);
    if (code < 0)
        return cmd_fail(&e);
    return cmd_show_answer(answer, audit_print);
}

/* clang-format off */
const struct cmd cmd_audit_entry = {
    .name = "audit",
    .synopsis = "[--by U] [--action A] [--target ID] [--limit N] [--after N]",
    .help = "show who did what, newest first; needs the unix socket or a token of role admin",
    .run = cmd_audit,
    .completion = "none",
    .options = {
        {"by", 0, "U", "only actions of this user or token", NULL},
        {"action", 0, "A", "only this action: job.submit, job.cancel, token.create...", "job.submit|job.cancel|job.hold|job.release|job.priority|job.label|job.resume|job.remove|job.import|sweep.submit|sweep.cancel|token.create|token.revoke|backup|notice.test"},
        {"target", 0, "ID", "only actions on the job, sweep or token with this id", NULL},
        {"limit", 0, "N", "at most N lines (50)", NULL},
        {"after", 0, "N", "start after line N", NULL},
    },
};
/* clang-format on */
