/* trainctl sweep FILE | plan FILE | show ID | wait ID | list | cancel ID. A file with one of these
 * names must be written as ./show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/document.h"
#include "client/job.h"
#include "client/stream.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"
#include "common/number.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "common/system/file.h"

static char *sweep_format_number(const json_t *json, const char *key, char text[FORMAT_BYTES])
{
    return format_number(text, FORMAT_BYTES, json_get_number(json, key, NAN));
}

static char *sweep_point_words(json_t *point)
{
    char *words = NULL;
    size_t bytes = 0;
    FILE *out = must_alloc(open_memstream(&words, &bytes));
    const char *key;
    json_t *value;
    json_object_foreach (point, key, value) {
        char digits[NUMBER_BYTES];
        char *text = json_is_real(value) ? xstrdup(number_text(json_real_value(value), digits))
                                         : json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
        fputs(bytes || ftell(out) > 0 ? " " : "", out);
        for (const char *c = key + (*key == '/'); *c; c++)
            fputc(*c == '/' ? '.' : *c, out);
        fprintf(out, "=%s", text ? text : "");
        free(text);
    }
    fclose(out);
    return words;
}

static char *sweep_format_result(const json_t *trial, const char *metric, char text[FORMAT_BYTES])
{
    double result = json_get_number(trial, "metric", NAN);

    return strncmp(metric, "top", 3) == 0       ? format_percent(text, FORMAT_BYTES, result)
           : strcmp(metric, "ttt_seconds") == 0 ? format_duration(text, FORMAT_BYTES, result)
                                                : format_number(text, FORMAT_BYTES, result);
}

static void sweep_trial_row(struct libscols_table *table, const json_t *trial, const char *metric)
{
    struct libscols_line *line = table_line(table);
    char text[FORMAT_BYTES];
    char *point = sweep_point_words(json_object_get(trial, "point"));

    table_set(line, 0, sweep_format_result(trial, metric, text));
    table_set(line, 1, sweep_format_number(trial, "budget", text));
    table_set(line, 2, json_get_text(trial, "state", ""));
    table_set_color(line, 2, job_state_color(json_get_text(trial, "state", "")));
    table_set(line, 3, sweep_format_number(trial, "job", text));
    table_set(line, 4, point);
    table_set(line, 5, json_get_text(trial, "reason", ""));
    free(point);
}

static void sweep_show(const json_t *sweep)
{
    struct libscols_table *table = table_create(1, "");
    const char *metric = json_get_text(json_object_get(sweep, "document"), "metric", "");
    const json_t *trials = json_object_get(sweep, "trials"), *trial;
    bool has_reasons = false;
    size_t i;

    print_prose("sweep %lld %s%s%s%s%s, best first", json_get_integer(sweep, "id", 0),
                json_get_text(sweep, "name", ""), *json_get_text(sweep, "name", "") ? " " : "",
                json_get_text(sweep, "state", ""), *json_get_text(sweep, "reason", "") ? ": " : "",
                json_get_text(sweep, "reason", ""));
    putchar('\n');
    json_array_foreach (trials, i, trial)
        has_reasons = has_reasons || *json_get_text(trial, "reason", "");
    table_column(table, metric, TABLE_RIGHT);
    table_column(table, "BUDGET", TABLE_RIGHT);
    table_column(table, "STATE", 0);
    table_column(table, "JOB", TABLE_RIGHT);
    table_column(table, "POINT", TABLE_WRAP);
    table_column(table, "REASON", has_reasons ? TABLE_TRUNC | TABLE_SPARE : SCOLS_FL_HIDDEN);
    json_array_foreach (trials, i, trial)
        sweep_trial_row(table, trial, metric);
    table_finish(table);
}

static void sweep_list(const json_t *answer)
{
    struct libscols_table *table = table_create(1, "ID>,NAME~,STATE,TRIALS>,BEST>");
    char text[FORMAT_BYTES];
    const json_t *sweep;
    size_t i;

    json_array_foreach (json_object_get(answer, "sweeps"), i, sweep) {
        struct libscols_line *line = table_line(table);
        const char *name = json_get_text(sweep, "name", "");
        table_set(line, 0, sweep_format_number(sweep, "id", text));
        table_set(line, 1, *name ? name : "-");
        table_set(line, 2, json_get_text(sweep, "state", ""));
        table_set(line, 3, sweep_format_number(sweep, "trial_count", text));
        table_set(line, 4,
                  sweep_format_result(json_object_get(sweep, "best"),
                                      json_get_text(sweep, "metric", ""), text));
    }
    table_finish(table);
}

typedef char *band_format(char *text, size_t bytes, double value);

static void sweep_plan_line(const json_t *plan, const char *key, const char *label,
                            band_format *format, const char *behind)
{
    char value[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];
    const json_t *band = json_object_get(plan, key);
    double middle = json_get_number(band, "value", NAN);

    if (isnan(middle))
        return;
    printf("%-12s%s", label, format(value, sizeof value, middle));
    format(low, sizeof low, json_get_number(band, "low", NAN));
    format(high, sizeof high, json_get_number(band, "high", NAN));
    if (strcmp(low, high) != 0)
        printf(", between %s and %s", low, high);
    puts(behind);
}

static void sweep_plan_rungs(const json_t *rungs)
{
    struct libscols_table *table =
        table_create(1, "RUNG>,BUDGET>,JOBS>,PARALLEL>,IMAGES>,TIME>,SLOT-HOURS>");
    char text[FORMAT_BYTES];
    const json_t *rung;
    size_t i;

    json_array_foreach (rungs, i, rung) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, sweep_format_number(rung, "rung", text));
        table_set(line, 1, sweep_format_number(rung, "budget", text));
        table_set(line, 2, sweep_format_number(rung, "jobs", text));
        table_set(line, 3, sweep_format_number(rung, "side_by_side", text));
        table_set(line, 4, format_count(text, sizeof text, json_get_integer(rung, "images", 0)));
        table_set(line, 5,
                  format_duration(text, sizeof text,
                                  json_get_number(json_object_get(rung, "seconds"), "value", NAN)));
        table_set(line, 6, sweep_format_number(json_object_get(rung, "slot_hours"), "value", text));
    }
    table_finish(table);
}

static void sweep_plan(const json_t *plan)
{
    const char *name = json_get_text(plan, "name", ""),
               *money = json_get_text(plan, "currency", "");
    long long points = json_get_integer(plan, "points", 0),
              jobs = json_get_integer(plan, "jobs", 0);
    char images[FORMAT_BYTES], evaluated[FORMAT_BYTES], unit[FORMAT_BYTES];
    const json_t *warning;
    size_t i;

    print_prose(
        "sweep%s%s: %lld %s, %lld %s, %s images to train on, %s to evaluate", *name ? " " : "",
        name, points, points == 1 ? "point" : "points", jobs, jobs == 1 ? "job" : "jobs",
        format_count(images, sizeof images, json_get_integer(plan, "images", 0)),
        format_count(evaluated, sizeof evaluated, json_get_integer(plan, "evaluated_images", 0)));
    putchar('\n');
    sweep_plan_rungs(json_object_get(plan, "rungs"));
    puts("");
    if (json_get_integer(plan, "jobs_without_speed", 0) > 0)
        puts("time        not yet known");
    sweep_plan_line(plan, "seconds", "time", format_duration, ", if no other job uses the slots");
    sweep_plan_line(plan, "slot_hours", "slot-hours", format_number, "");
    sweep_plan_line(plan, "node_hours", "node-hours", format_number, "");
    sweep_plan_line(plan, "kwh", "energy", format_number, " kWh (estimate)");
    snprintf(unit, sizeof unit, "%s%s", *money ? " " : "", money);
    sweep_plan_line(plan, "cost", "cost", format_number, unit);
    json_array_foreach (json_object_get(plan, "warnings"), i, warning)
        print_wrapped(stdout, "warning: ", 2, json_string_value(warning));
}

/* Sends the text unchanged unless it contains a relative path. */
static int sweep_post(const char *path, const char *file, json_t **answer, struct error *e)
{
    struct error ignored; /* the daemon reports it */
    bool changed = false;
    size_t bytes;
    char *text;
    int status = document_read(file, &text, &bytes, e);

    if (status)
        return status;
    json_t *sweep = json_document_parse(text, bytes, &ignored);
    if (sweep)
        status = sweep_paths_absolute(sweep, &changed, e);
    if (!status && changed)
        status = api_send_json("POST", path, sweep, answer, e);
    else if (!status)
        status = api_post(path, text, bytes, answer, e);
    json_decref(sweep);
    free(text);
    return status;
}

/* Jobs of a cancelled sweep may take a while to end. */
static bool sweep_runs(const json_t *sweep)
{
    const json_t *trial;
    size_t i;

    if (strcmp(json_get_text(sweep, "state", ""), "running") == 0)
        return true;
    json_array_foreach (json_object_get(sweep, "trials"), i, trial)
        if (strcmp(json_get_text(trial, "state", ""), "submitted") == 0)
            return true;
    return false;
}

/* The stream reports the ends of jobs. The sweep ends shortly after the last, so poll it. */
static int sweep_wait(const char *path, json_t **answer, struct error *e)
{
    static const double looks[] = {0.2, 1, 3, 10};
    const size_t last = sizeof looks / sizeof looks[0] - 1;
    struct stream *stream = stream_create("/v1/events", -1);
    struct stream_event event;
    size_t next = 0;
    int status = api_get(path, answer, e);

    while (status == 0 && sweep_runs(*answer)) {
        int news = stream_next(stream, -1, looks[next], &event, e);
        if (news < 0) {
            status = news;
            break;
        }
        stream_report(news, "");
        if (news == STREAM_LOST || (news == STREAM_EVENT && strcmp(event.type, "state") != 0))
            continue;
        next = news != STREAM_NOTHING ? 0 : next < last ? next + 1 : last;
        if (news == STREAM_EVENT)
            continue;
        json_decref(*answer);
        status = api_get(path, answer, e);
        if (status == -(int)ERR_UNREACHABLE)
            status = (*answer = json_pack("{s:s}", "state", "running")) ? 0 : status;
    }
    stream_destroy(stream);
    return status;
}

static int sweep_no_such_verb(const char *word, struct error *e)
{
    static const char *const verbs[] = {"plan", "show", "wait", "list", "cancel"};
    struct suggest near = {.word = word};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        text_suggest(&near, verbs[i]);
    return error_set(e, ERR_USAGE, "trainctl sweep has no command \"%.64s\"%s%s%s", word,
                     near.best ? "; did you mean \"" : "", near.best ? near.best : "",
                     near.best ? "\"?" : "");
}

static int sweep_request(const struct cmd_args *args, json_t **answer, struct error *e)
{
    const char *word = args->operands[0];
    bool cancels = strcmp(word, "cancel") == 0;
    char path[64];
    long id;

    if (strcmp(word, "list") == 0 && args->operand_count > 1)
        return error_set(e, ERR_USAGE, "unexpected argument \"%s\". Usage: trainctl sweep list",
                         args->operands[1]);
    if (strcmp(word, "list") == 0)
        return api_get("/v1/sweeps", answer, e);
    bool waits = strcmp(word, "wait") == 0;
    bool plans = strcmp(word, "plan") == 0;
    bool verb = cancels || waits || plans || strcmp(word, "show") == 0;
    if (!verb && args->operand_count > 1)
        return sweep_no_such_verb(word, e);
    if (!verb)
        return sweep_post("/v1/sweeps", word, answer, e);
    if (args->operand_count < 2 && plans)
        return error_set(e, ERR_USAGE, "missing FILE. Usage: trainctl sweep plan FILE");
    if (plans)
        return sweep_post("/v1/sweeps/plan", args->operands[1], answer, e);
    if (args->operand_count < 2)
        return error_set(e, ERR_USAGE, "missing ID. Usage: trainctl sweep %s ID", word);
    int status = cmd_sweep_id(args->operands[1], &id, e);
    snprintf(path, sizeof path, "/v1/sweeps/%ld%s", id, cancels ? "/cancel" : "");
    if (status)
        return status;
    if (waits)
        return sweep_wait(path, answer, e);
    return cancels ? api_post(path, NULL, 0, answer, e) : api_get(path, answer, e);
}

static int cmd_sweep(const struct cmd_args *args)
{
    struct error e;
    json_t *answer;
    int code = 0;

    if (sweep_request(args, &answer, &e))
        return cmd_fail(&e);
    const json_t *sweeps = json_object_get(answer, "sweeps");
    const char *state = json_get_text(answer, "state", "");
    if (client.json)
        print_json(answer);
    else if (sweeps && !json_array_size(sweeps))
        puts("No sweeps yet. Submit one with: trainctl sweep FILE");
    else if (sweeps)
        sweep_list(answer);
    else if (json_object_get(answer, "rungs"))
        sweep_plan(answer);
    else
        sweep_show(answer);
    if (strcmp(args->operands[0], "wait") == 0)
        code = strcmp(state, "cancelled") == 0 ? error_type(ERR_INTERRUPTED)->exit_code
                                               : strcmp(state, "failed") == 0;
    json_decref(answer);
    return code;
}

/* clang-format off */
const struct cmd cmd_sweep_entry = {
    .name = "sweep", .synopsis = "FILE|- | plan FILE|- | show ID | wait ID | list | cancel ID",
    .help = "run, plan and inspect hyper-parameter sweeps", .example = "trainctl sweep plan sweep.json",
    .run = cmd_sweep, .completion = "plan:file|show:sweep|wait:sweep|list|cancel:sweep file", .operands = {1, 2},
};
/* clang-format on */
