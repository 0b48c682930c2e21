#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"

static void report_print_audit(const json_t *answer)
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
    return cmd_show_answer(answer, report_print_audit);
}

static void report_print_failures(const json_t *answer)
{
    struct libscols_table *table =
        table_create(1, "LABEL,COUNT>,RESTART,DRAIN,NOTIFY,BY,PATTERN~?");
    char text[FORMAT_BYTES];
    const json_t *rule;
    size_t i;

    json_array_foreach (json_object_get(answer, "rules"), i, rule) {
        struct libscols_line *line = table_line(table);
        const json_t *restart = json_object_get(rule, "restart");
        table_set(line, 0, json_get_text(rule, "label", ""));
        table_set(line, 1, format_count(text, sizeof text, json_get_integer(rule, "count", 0)));
        table_set(line, 2, json_is_true(restart) ? "yes" : json_is_false(restart) ? "no" : "-");
        table_set(line, 3, json_get_text(rule, "drain", ""));
        table_set(line, 4, json_is_true(json_object_get(rule, "notify")) ? "yes" : "-");
        table_set(line, 5,
                  json_is_true(json_object_get(rule, "shipped")) ? "traind" : "failure_rules");
        table_set(line, 6, json_get_text(rule, "pattern", ""));
    }
    struct libscols_line *line = table_line(table);
    table_set(line, 0, "(none)");
    table_set(line, 1, format_count(text, sizeof text, json_get_integer(answer, "unlabelled", 0)));
    table_finish(table);
}

static char *report_percent(char text[FORMAT_BYTES], const json_t *score, const char *key,
                            const char *format)
{
    double share = json_get_number(score, key, NAN);

    if (isnan(share))
        return strcpy(text, "-");
    snprintf(text, FORMAT_BYTES, format, 100 * share);
    return text;
}

static void report_print_forecasts(const json_t *answer)
{
    struct libscols_table *table = table_create(1, "ESTIMATE|,AT>,JOBS>,ERROR>,BIAS>,IN RANGE>");
    char text[FORMAT_BYTES];
    const json_t *score;
    size_t i;

    json_array_foreach (json_object_get(answer, "scores"), i, score) {
        struct libscols_line *line = table_line(table);
        const char *of = json_get_text(score, "of", "");
        table_set(line, 0,
                  strcmp(of, "time_left") == 0 ? "time left"
                  : strcmp(of, "target") == 0  ? "until the target"
                                               : "time to train");
        table_set(line, 1,
                  isnan(json_get_number(score, "share", NAN))
                      ? "start"
                      : report_percent(text, score, "share", "%.0f %%"));
        table_set(line, 2, format_count(text, sizeof text, json_get_integer(score, "jobs", 0)));
        table_set(line, 3, report_percent(text, score, "median_error", "%.0f %%"));
        table_set(line, 4, report_percent(text, score, "median_bias", "%+.0f %%"));
        table_set(line, 5, report_percent(text, score, "inside", "%.0f %%"));
    }
    table_finish(table);
    if (json_get_integer(answer, "jobs", 0) == 0)
        puts("No job has succeeded yet, so no estimate can be judged.");
}

static void report_print_users(const json_t *users)
{
    static const char *const counts[] = {"running", "slots", "queued"};
    struct libscols_table *table =
        table_create(1, "USER~,SHARE>,SLOT-HOURS>,RUNNING>,SLOTS>,QUEUED>");
    char text[FORMAT_BYTES];
    const json_t *user;
    size_t i;

    json_array_foreach (users, i, user) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, json_get_text(user, "user", "(without a token)"));
        table_setf(line, 1, "%.0f %%", 100 * json_get_number(user, "share", 0));
        table_set(line, 2,
                  format_number(text, sizeof text, json_get_number(user, "slot_hours", NAN)));
        for (size_t c = 0; c < 3; c++) {
            table_setf(line, 3 + c, "%lld", json_get_integer(user, counts[c], 0));
        }
    }
    table_finish(table);
}

static void report_print_usage(const json_t *answer)
{
    static const char *const names[] = {"max_running_per_user", "max_slots_per_user",
                                        "max_queued_per_user"};

    report_print_users(json_object_get(answer, "users"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_get_integer(answer, names[i], 0) > 0)
            printf("%s: %lld\n", names[i], json_get_integer(answer, names[i], 0));
    double weight = json_get_number(answer, "fair_share_weight", 0);
    double hours = json_get_number(answer, "fair_share_half_life_hours", 0);
    bool days = fmod(hours, 24) == 0;
    if (weight > 0)
        print_prose("Usage decays with a half-life of %g %s. A user with all of it loses %g "
                    "priority points.",
                    days ? hours / 24 : hours, days ? "days" : "hours", weight);
    else
        print_prose("Usage decays with a half-life of %g %s. It does not affect queue order.",
                    days ? hours / 24 : hours, days ? "days" : "hours");
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

const struct cmd cmd_failures_entry = {
    .name = "failures", .synopsis = "",
    .help = "list the failure rules and their failures since the start of the daemon", .example = "trainctl failures",
    .run = cmd_show_document, .document = "/v1/failures", .print = report_print_failures,
};

const struct cmd cmd_forecasts_entry = {
    .name = "forecasts", .synopsis = "", .help = "show how accurate time estimates were", .example = "trainctl forecasts",
    .run = cmd_show_document, .document = "/v1/forecasts", .print = report_print_forecasts,
};

const struct cmd cmd_usage_entry = {
    .name = "usage", .synopsis = "", .help = "show usage and limits per user", .example = "trainctl usage",
    .run = cmd_show_document, .document = "/v1/usage", .print = report_print_usage,
};
/* clang-format on */
