/* trainctl audit: who asked for what, the newest first. */
#include <limits.h>
#include <stdlib.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"

static void audit_print(const json_t *answer)
{
    const json_t *lines = json_object_get(answer, "lines"), *one;
    char text[FORMAT_BYTES];
    size_t i;

    if (json_array_size(lines) == 0) {
        puts("No entries match.");
        return;
    }
    struct libscols_table *table = table_create(1, "ID>,WHEN,WHO~,WHAT,ON>,DETAIL|");
    json_array_foreach (lines, i, one) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, format_count(text, sizeof text, json_get_integer(one, "id", 0)));
        table_set(line, 1,
                  format_ago(text, sizeof text, clock_now() - json_get_number(one, "t", 0)));
        table_set(line, 2, json_get_text(one, "by", "-"));
        table_set(line, 3, json_get_text(one, "action", ""));
        snprintf(text, sizeof text, "%lld", json_get_integer(one, "target", 0));
        table_set(line, 4, json_get_integer(one, "target", 0) > 0 ? text : "-");
        table_set(line, 5, json_get_text(one, "detail", ""));
    }
    table_finish(table);
    if (json_is_integer(json_object_get(answer, "next")))
        fprintf(stderr, "next page: --after %lld\n", json_get_integer(answer, "next", 0));
}

static int cmd_audit(const struct cmd_args *args)
{
    struct error e;
    json_t *answer;
    static const char *const options[] = {"limit", "after", "by", "action", "target"};
    long number;

    const char *count = cmd_value(args, "limit"), *page = cmd_value(args, "after");
    const char *on = cmd_value(args, "target");
    if ((count && cmd_number(count, "limit", 1, 1000, &number, &e) < 0) ||
        (page && cmd_number(page, "after", 1, LONG_MAX, &number, &e) < 0) ||
        (on && cmd_number(on, "target", 1, LONG_MAX, &number, &e) < 0))
        return cmd_fail(&e);
    char *path = cmd_query(args, "/v1/audit", options, sizeof options / sizeof options[0]);
    int code = api_get(path, &answer, &e);
    free(path);
    if (code < 0)
        return cmd_fail(&e);
    return cmd_show_answer(answer, audit_print);
}

/* clang-format off */
const struct cmd cmd_audit_entry = {
    .name = "audit", .synopsis = "[--by U] [--action A] [--target ID] [--limit N] [--after N]",
    .help = "show who did what, newest first", .example = "trainctl audit --by eve --limit 10",
    .run = cmd_audit,
    .options = {
        OPTION("by", 0, "U", "only actions of this user or token", NULL),
        OPTION("action", 0, "A", "only this action: job.submit, job.cancel, token.create...", "job.submit|job.cancel|job.hold|job.release|job.priority|job.label|job.resume|job.remove|job.import|sweep.submit|sweep.cancel|token.create|token.revoke|backup|notice.test"),
        OPTION("target", 0, "ID", "only actions on the job, sweep or token with this id", NULL),
        OPTION("limit", 0, "N", "at most N lines (50)", NULL),
        OPTION("after", 0, "N", "start after line N", NULL),
    },
};
/* clang-format on */
