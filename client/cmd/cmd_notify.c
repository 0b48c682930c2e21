#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/notify/rule.h"

#define TEST_SECONDS 90 /* mail may take a minute */

static bool notify_waits(const json_t *notice)
{
    return strcmp(json_get_text(notice, "state", ""), "waiting") == 0;
}

static int notify_await(json_t **notice, struct error *e)
{
    double until = clock_monotonic() + TEST_SECONDS;
    useconds_t pause = 20000;
    json_t *answer;

    while (notify_waits(*notice)) {
        if (clock_monotonic() > until)
            return error_set(e, ERR_UNREACHABLE,
                             "the test notice is still waiting after others to this target: see "
                             "trainctl notify list");
        usleep(pause);
        pause = pause < 500000 ? pause * 2 : pause;
        if (api_call("GET", &answer, e, "/v1/notices?id=%lld", json_get_integer(*notice, "id", 0)))
            return -(int)e->code;
        json_decref(*notice);
        *notice = json_incref(json_array_get(json_object_get(answer, "notices"), 0));
        json_decref(answer);
        if (!*notice)
            return error_set(e, ERR_NOT_FOUND, "the notice no longer exists");
    }
    return 0;
}

static int notify_test(const struct cmd_args *args, struct error *e)
{
    const char *format = cmd_value(args, "format");
    json_t *notice;

    if (args->operand_count != 2)
        return error_set(e, ERR_USAGE,
                         "missing TARGET. Usage: trainctl notify test https://HOST/PATH");
    if (format && cmd_word(format, "format", notice_format_name, e))
        return -(int)e->code;
    json_t *body =
        json_pack("{s:s, s:s}", "to", args->operands[1], "format", format ? format : "json");
    if (!body)
        return error_set(e, ERR_USAGE, "the target must be UTF-8");
    int status = api_send_json("POST", "/v1/notices/test", body, &notice, e);
    json_decref(body);
    if (status)
        return status;
    status = notify_await(&notice, e);
    const char *to = json_get_text(notice, "to", "");
    bool delivered = strcmp(json_get_text(notice, "state", ""), "delivered") == 0;
    if (!status && client.json)
        print_json(notice);
    else if (!status && delivered)
        printf("delivered to %s (notice %s)\n", to, json_get_text(notice, "notice", ""));
    if (!status && !delivered)
        status = error_set(e, ERR_IO, "not delivered to %s: %s", to,
                           json_get_text(notice, "error", "?"));
    json_decref(notice);
    return status;
}

static const char *notify_when(const json_t *n, char text[FORMAT_BYTES])
{
    double next = json_get_number(n, "next_at", 0) - clock_now();

    if (!notify_waits(n))
        return format_ago(text, FORMAT_BYTES, clock_now() - json_get_number(n, "done_at", 0));
    if (next <= 0)
        return "now";
    snprintf(text, FORMAT_BYTES, "in ");
    format_duration(text + 3, FORMAT_BYTES - 3, next);
    return text;
}

static void notify_add_row(struct libscols_table *table, const json_t *n)
{
    json_int_t job = json_get_integer(n, "job", 0), sweep = json_get_integer(n, "sweep", 0);
    struct libscols_line *line = table_line(table);
    char text[FORMAT_BYTES];

    table_setf(line, 0, "%lld", json_get_integer(n, "id", 0));
    table_set(line, 1, json_get_text(n, "kind", ""));
    if (job > 0)
        table_setf(line, 2, "job %lld", job);
    else if (sweep > 0)
        table_setf(line, 2, "sweep %lld", sweep);
    else
        table_setf(line, 2, "%.40s", json_get_text(n, "node", "-"));
    table_set(line, 3, json_get_text(n, "state", ""));
    table_set(line, 4, notify_when(n, text));
    table_setf(line, 5, "%lld", json_get_integer(n, "attempts", 0));
    table_set(line, 6, json_get_text(n, "to", ""));
    table_set(line, 7, json_get_text(n, "error", ""));
}

static void notify_print(const json_t *answer)
{
    const json_t *notices = json_object_get(answer, "notices"), *one;
    size_t i;

    if (json_array_size(notices) == 0) {
        puts("No notices match.");
        return;
    }
    struct libscols_table *table = table_create(1, "ID>,KIND,ABOUT~,STATE,WHEN,TRIES>,TO~,ERROR|");
    json_array_foreach (notices, i, one)
        notify_add_row(table, one);
    table_finish(table);
    if (json_is_integer(json_object_get(answer, "next")))
        fprintf(stderr, "next page: --after %lld\n", json_get_integer(answer, "next", 0));
}

static const char *notify_state_at(size_t i)
{
    static const char *const states[] = {"waiting", "delivered", "failed"};
    return i < sizeof states / sizeof states[0] ? states[i] : NULL;
}

static int notify_list(const struct cmd_args *args, struct error *e)
{
    static const char *const numbers[] = {"limit", "after", "job", "sweep"};
    const char *state = cmd_value(args, "state");
    char path[256];
    json_t *answer;

    if (args->operand_count != 1)
        return error_set(e, ERR_USAGE, "unexpected argument \"%s\". Usage: trainctl notify list",
                         args->operands[1]);
    if (state && cmd_word(state, "state", notify_state_at, e))
        return -(int)e->code;
    int used =
        snprintf(path, sizeof path, "/v1/notices%s%s", state ? "?state=" : "", state ? state : "");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const char *text = cmd_value(args, numbers[i]);
        long number;
        if (!text)
            continue;
        int status = i == 2   ? cmd_job_id(text, &number, e)
                     : i == 3 ? cmd_sweep_id(text, &number, e)
                              : cmd_number(text, numbers[i], 1, i ? LONG_MAX : 1000, &number, e);
        if (status < 0)
            return status;
        used += snprintf(path + used, sizeof path - (size_t)used, "%c%s=%ld",
                         strchr(path, '?') ? '&' : '?', numbers[i], number);
    }
    if (api_get(path, &answer, e) < 0)
        return -(int)e->code;
    return cmd_show_answer(answer, notify_print);
}

static int cmd_notify(const struct cmd_args *args)
{
    struct error e;
    int status;

    if (strcmp(args->operands[0], "test") == 0)
        status = notify_test(args, &e);
    else if (strcmp(args->operands[0], "list") == 0)
        status = notify_list(args, &e);
    else
        return cmd_usage(args->cmd, "\"%s\" is not test or list", args->operands[0]);
    return status < 0 ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_notify_entry = {
    .name = "notify", .synopsis = "test [--format F] TARGET | list [--job ID] [--sweep ID] [--state S] [--limit N] [--after N]",
    .help = "send a test notice to a URL or a mail address, or list notices", .example = "trainctl notify test mailto:eve@example.org",
    .run = cmd_notify, .completion = "test|list", .operands = {1, 2},
    .options = {
        OPTION("format", 0, "F", "json, or text as chat services take it (json)", "json|text"),
        OPTION("job", 0, "ID", "only notices of this job's document", "job"),
        OPTION("sweep", 0, "ID", "only notices of this sweep's document", "none"),
        OPTION("state", 0, "S", "only waiting, delivered or failed ones", "waiting|delivered|failed"),
        OPTION("limit", 0, "N", "at most N notices (50)", NULL),
        OPTION("after", 0, "N", "start after notice N", NULL),
    },
};
/* clang-format on */
