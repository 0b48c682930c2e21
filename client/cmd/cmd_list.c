#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/cmd/cmd_list.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"

#define TEXT_BYTES (2 * FORMAT_BYTES)

enum list_column {
    ID,
    NAME,
    STATE,
    DONE,
    TOP1,
    BEST,
    BEST_AT,
    LOSS,
    RATE,
    TIME,
    LEFT,
    USER,
    PRIORITY,
    TAGS,
    SUBMITTED,
    FINISHED,
    DISK,
    REASON,
    NOTE,
    COLUMNS
};

/* name: for --columns. shown: whether it is shown by default. */
static const struct {
    const char *name, *heading;
    int flags;
    enum { ALWAYS, IF_SOME, WIDE_ONLY, IF_ASKED } shown;
} columns[COLUMNS] = {
    [ID] = {"id",             "ID",        TABLE_RIGHT,               ALWAYS   },
    [NAME] = {"name",           "NAME",      TABLE_TRUNC,               ALWAYS   },
    [STATE] = {"state",          "STATE",     0,                         ALWAYS   },
    [DONE] = {"done",           "DONE",      TABLE_RIGHT,               ALWAYS   },
    [TOP1] = {"top1",           "TOP-1",     TABLE_RIGHT,               ALWAYS   },
    [BEST] = {"best_top1",      "BEST",      TABLE_RIGHT,               IF_SOME  },
    [BEST_AT] = {"best_at",        "BEST AT",   TABLE_RIGHT,               WIDE_ONLY},
    [LOSS] = {"loss",           "LOSS",      TABLE_RIGHT,               IF_ASKED },
    [RATE] = {"images_per_sec", "IMAGES/S",  TABLE_RIGHT,               ALWAYS   },
    [TIME] = {"ttt_seconds",    "TIME",      TABLE_RIGHT,               WIDE_ONLY},
    [LEFT] = {"left",           "LEFT",      TABLE_RIGHT,               ALWAYS   },
    [USER] = {"user",           "USER",      0,                         WIDE_ONLY},
    [PRIORITY] = {"priority",       "PRIORITY",  TABLE_RIGHT,               WIDE_ONLY},
    [TAGS] = {"tags",           "TAGS",      0,                         WIDE_ONLY},
    [SUBMITTED] = {"submitted",      "SUBMITTED", TABLE_RIGHT,               ALWAYS   },
    [FINISHED] = {"finished",       "FINISHED",  TABLE_RIGHT,               IF_ASKED },
    [DISK] = {"disk_bytes",     "DISK",      TABLE_RIGHT | TABLE_SPARE, ALWAYS   },
    [REASON] = {"reason",         "REASON",    TABLE_TRUNC | TABLE_SPARE, ALWAYS   },
    [NOTE] = {"note",           "NOTE",      TABLE_TRUNC,               IF_ASKED },
};

static const char *list_column_at(size_t i)
{
    return i < COLUMNS ? columns[i].name : NULL;
}

struct layout {
    enum list_column order[COLUMNS];
    int count;
};

static bool list_has_better(const json_t *jobs)
{
    const json_t *item;
    struct job job;
    size_t i;

    json_array_foreach (jobs, i, item) {
        job_read(item, &job);
        if (!isnan(job.best_top1) && job.best_top1 != job.top1)
            return true;
    }
    return false;
}

static struct layout list_make_layout(const json_t *jobs, bool wide)
{
    struct layout layout = {0};

    for (int c = 0; c < COLUMNS; c++)
        if (columns[c].shown == ALWAYS || (columns[c].shown == WIDE_ONLY && wide) ||
            (columns[c].shown == IF_SOME && list_has_better(jobs)))
            layout.order[layout.count++] = (enum list_column)c;
    return layout;
}

static struct layout list_asked_layout(const char *names)
{
    struct layout layout = {0};

    for (const char *at = names; *at && layout.count < COLUMNS; at += *at == ',') {
        size_t length = strcspn(at, ",");
        for (int c = 0; c < COLUMNS; c++)
            if (strlen(columns[c].name) == length && strncmp(columns[c].name, at, length) == 0)
                layout.order[layout.count++] = (enum list_column)c;
        at += length;
    }
    return layout;
}

static const char *list_short(enum list_column c, const struct job *job, const json_t *json,
                              char text[TEXT_BYTES])
{
    char in[FORMAT_BYTES];

    switch (c) {
    case ID:
        snprintf(text, TEXT_BYTES, "%ld", job->id);
        return text;
    case STATE:
        return job->state;
    case DONE:
        snprintf(text, TEXT_BYTES, "%.0f %%", floor(100 * job_progress(job)));
        return text;
    case TOP1:
        return format_percent(text, TEXT_BYTES, job->top1);
    case BEST:
        return format_percent(text, TEXT_BYTES, job->best_top1);
    case BEST_AT:
        snprintf(text, TEXT_BYTES, isnan(job->best_top1) ? "-" : "step %.0f", job->best_top1_step);
        return text;
    case LOSS:
        return format_number(text, TEXT_BYTES, job->loss);
    case RATE:
        return format_number(text, TEXT_BYTES, job->images_per_sec);
    case LEFT:
        if (isnan(job->estimated_start))
            return format_duration(text, FORMAT_BYTES, job_time_left(job, clock_now()).value);
        format_duration(in, sizeof in, fmax(0, job->estimated_start - clock_now()));
        snprintf(text, TEXT_BYTES, "in %s", in);
        return text;
    case TIME:
        return format_duration(text, TEXT_BYTES, job->ttt_seconds);
    case PRIORITY:
        snprintf(text, TEXT_BYTES, "%lld", (long long)json_get_integer(json, "priority", 0));
        return text;
    case SUBMITTED:
        return format_ago(text, TEXT_BYTES, clock_now() - job->created_at);
    case FINISHED:
        return format_ago(text, TEXT_BYTES, clock_now() - job->finished_at);
    case DISK:
        return format_size(text, TEXT_BYTES, job->disk_bytes);
    default:
        return "";
    }
}

static void list_set(struct libscols_line *line, size_t i, enum list_column c,
                     const struct job *job, const json_t *json)
{
    char text[TEXT_BYTES], reason[512], *words;
    bool imported = json_is_object(json_object_get(json, "imported_from"));

    switch (c) {
    case NAME:
        table_set(line, i, *job->name ? job->name : "-");
        break;
    case REASON:
        snprintf(reason, sizeof reason, "%s%s%.400s", imported ? "imported" : "",
                 imported && *job->reason ? ": " : "", job->reason);
        table_set(line, i, reason);
        break;
    case USER:
        table_set(line, i, json_get_text(json, "submitted_by", "-"));
        break;
    case TAGS:
    case NOTE:
        words = c == TAGS ? job_tags_words(json) : job_note_words(json);
        table_set(line, i, words);
        free(words);
        break;
    default:
        table_set(line, i, list_short(c, job, json, text));
        if (c == STATE)
            table_set_color(line, i, job_state_color(job->state));
    }
}

void list_print_jobs(const json_t *answer, const char *asked, bool wide)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *item;
    struct libscols_table *table = table_create(1, "");
    struct layout layout = asked ? list_asked_layout(asked) : list_make_layout(jobs, wide);
    char text[FORMAT_BYTES];
    size_t i;

    for (int k = 0; k < layout.count; k++) {
        enum list_column c = layout.order[k];
        table_column(table, columns[c].heading,
                     columns[c].flags |
                         ((c == SUBMITTED || c == DISK) && !wide && !asked ? table_if_wide() : 0));
    }
    json_array_foreach (jobs, i, item) {
        struct libscols_line *line = table_line(table);
        struct job job;
        job_read(item, &job);
        for (int k = 0; k < layout.count; k++)
            list_set(line, (size_t)k, layout.order[k], &job, item);
    }
    (wide || asked ? table_finish_whole : table_finish)(table);
    long long total = json_get_integer(answer, "total", 0);
    if (isatty(STDERR_FILENO) && json_get_integer(answer, "disk_bytes", 0) > 0)
        fprintf(stderr, "all jobs together: %s on disk\n",
                format_size(text, sizeof text, json_get_number(answer, "disk_bytes", 0)));
    if (total > (long long)json_array_size(jobs))
        fprintf(stderr, "%zu of %lld jobs shown; --limit N shows more\n", json_array_size(jobs),
                total);
    const json_t *next = json_object_get(answer, "next");
    const char *name =
        json_string_value(next); /* sort key of the next page, to be quoted for a shell */
    if (json_is_integer(next))
        fprintf(stderr, "next page: --after %lld\n", (long long)json_integer_value(next));
    else if (name && !strpbrk(name, "'\n"))
        fprintf(stderr, "next page: --after '%s'\n", name);
}

static char *list_group_in_states(const json_t *group, const char *states, char text[TEXT_BYTES])
{
    const json_t *count;
    const char *state;
    long long sum = 0;

    json_object_foreach ((json_t *)json_object_get(group, "states"), state, count)
        if (strstr(states, state))
            sum += json_integer_value(count);
    return sum ? format_count(text, TEXT_BYTES, sum) : strcpy(text, "-");
}

static const struct {
    const char *heading;
    int flags;
} group_columns[] = {
    {"JOBS",       0          },
    {"ACTIVE",     0          },
    {"SUCCEEDED",  0          },
    {"FAILED",     0          },
    {"CANCELLED",  0          },
    {"BEST TOP-1", 0          },
    {"OF JOB",     0          },
    {"AT",         TABLE_SPARE},
    {"MEAN TIME",  TABLE_SPARE},
    {"IMAGES",     TABLE_SPARE},
};
#define GROUP_COLUMNS (sizeof group_columns / sizeof group_columns[0])

static const char *list_group_cell(const json_t *group, size_t column, char text[TEXT_BYTES])
{
    const json_t *best = json_object_get(group, "best");

    switch (column) {
    case 0:
        return format_count(text, TEXT_BYTES, json_get_integer(group, "jobs", 0));
    case 1:
        return list_group_in_states(group, "queued starting running evaluating", text);
    case 2:
        return list_group_in_states(group, "succeeded", text);
    case 3:
        return list_group_in_states(group, "failed", text);
    case 4:
        return list_group_in_states(group, "cancelled", text);
    case 5:
        return format_percent(text, TEXT_BYTES, json_get_number(best, "top1", NAN));
    case 6:
    case 7:
        if (!json_is_object(best))
            return strcpy(text, "-");
        snprintf(text, TEXT_BYTES, column == 6 ? "%lld" : "step %lld",
                 json_get_integer(best, column == 6 ? "id" : "step", 0));
        return text;
    case 8:
        return format_duration(text, TEXT_BYTES, json_get_number(group, "mean_ttt_seconds", NAN));
    default:
        return format_count(text, TEXT_BYTES, json_get_integer(group, "images", 0));
    }
}

static void list_print_groups(const json_t *answer, const char *key)
{
    struct libscols_table *table = table_create(1, "");
    const json_t *groups = json_object_get(answer, "groups"), *group;
    char text[TEXT_BYTES];
    size_t i;

    table_column(table, key, TABLE_TRUNC);
    for (i = 0; i < GROUP_COLUMNS; i++)
        table_column(table, group_columns[i].heading, TABLE_RIGHT | group_columns[i].flags);
    json_array_foreach (groups, i, group) {
        const json_t *value = json_object_get(group, "value");
        struct libscols_line *line = table_line(table);
        char *words = json_is_null(value) ? NULL : print_value(value);
        table_set(line, 0, words ? words : "-");
        free(words);
        for (size_t c = 0; c < GROUP_COLUMNS; c++)
            table_set(line, c + 1, list_group_cell(group, c, text));
    }
    table_finish(table);
    long long all = json_get_integer(answer, "group_count", 0);
    if (all > (long long)json_array_size(groups))
        fprintf(stderr, "%zu of %lld groups shown; --limit N shows more\n", json_array_size(groups),
                all);
}

#define LIMIT_DEFAULT 20

/* Options passed as parameters of GET /v1/jobs, filters first. */
static const char *const list_parameters[] = {"user", "name",  "tag",   "where", "label",
                                              "find", "state", "group", "sort",  "after"};
#define LIST_FILTERS    6
#define LIST_PARAMETERS (sizeof list_parameters / sizeof list_parameters[0])

static void list_print_none(const struct cmd_args *args)
{
    const char *state = cmd_value(args, "state");
    bool filtered = cmd_value(args, "sweep");

    for (size_t i = 0; i < LIST_FILTERS; i++)
        filtered = filtered || cmd_value(args, list_parameters[i]);
    if (filtered)
        puts("No jobs match.");
    else if (state)
        printf("No jobs in state %s.\n", state);
    else
        puts("No jobs yet. Submit one with: trainctl submit FILE");
}

static int cmd_list(const struct cmd_args *args)
{
    struct error e;
    json_t *answer;
    long limit = LIMIT_DEFAULT, sweep = 0;
    char path[96];

    const char *count = cmd_value(args, "limit"), *state = cmd_value(args, "state");
    const char *output = cmd_value(args, "output"), *asked = cmd_value(args, "columns");
    const char *of = cmd_value(args, "sweep");
    if ((count && cmd_number(count, "limit", 1, 1000, &limit, &e) < 0) ||
        (of && cmd_sweep_id(of, &sweep, &e)) ||
        (state && cmd_words(state, "state", cmd_state_at, &e)) ||
        (asked && cmd_words(asked, "column", list_column_at, &e)))
        return cmd_fail(&e);
    bool json = output && strcmp(output, "json") == 0;
    if (output && !json && strcmp(output, "wide") != 0)
        return cmd_usage(args->cmd, "--output takes wide or json, not \"%s\"", output);
    client.json = client.json || json;
    if (asked && cmd_value(args, "group"))
        return cmd_usage(args->cmd, "--columns and --group exclude each other");
    int used = snprintf(path, sizeof path, "/v1/jobs?limit=%ld", limit);
    if (sweep)
        snprintf(path + used, sizeof path - (size_t)used, "&sweep=%ld", sweep);
    char *query = cmd_query(args, path, list_parameters, LIST_PARAMETERS);
    int code = api_get(query, &answer, &e);
    free(query);
    if (code < 0)
        return cmd_fail(&e);
    const char *group = cmd_value(args, "group");
    if (client.json)
        print_json(answer);
    else if (json_array_size(json_object_get(answer, group ? "groups" : "jobs")) == 0)
        list_print_none(args);
    else if (group)
        list_print_groups(answer, group);
    else
        list_print_jobs(answer, asked, output != NULL);
    json_decref(answer);
    return 0;
}

/* clang-format off */
const struct cmd cmd_list_entry = {
    .name = "list", .synopsis = "[--state S] [--tag T] [-q WORDS] [--user U] [--name N] [--sweep ID] [--label L] [--where KEY=VALUE] [--sort KEY] [--columns C | -o wide | --group KEY] [--limit N] [--after NEXT]",
    .help = "list jobs, newest first", .example = "trainctl list --state running,queued",
    .run = cmd_list,
    .options = {
        OPTION("state", 0, "S", "only jobs in these states, e.g. running,queued", "state"),
        OPTION("tag", 0, "T", "only jobs with this tag, or with all of several, e.g. baseline,paper", "tag"),
        OPTION("find", 'q', "WORDS", "only jobs with these words in their id, name, tags, note, reason, user, network or data", NULL),
        OPTION("user", 0, "U", "only jobs of this user or token", NULL),
        OPTION("name", 0, "N", "only jobs whose name contains N", NULL),
        OPTION("sweep", 0, "ID", "only jobs of this sweep", "sweep"),
        OPTION("label", 0, "L", "only jobs with this failure label, e.g. out-of-memory", "none"),
        OPTION("where", 0, "KEY=VALUE", "only jobs with this value in their document, e.g. optimizer.name=lars", "key"),
        OPTION("sort", 0, "KEY", "newest, name, priority, top1, loss, images_per_sec, ttt_seconds, finished_at, best_top1 or disk_bytes", "newest|name|priority|top1|loss|images_per_sec|ttt_seconds|finished_at|best_top1|disk_bytes"),
        OPTION("columns", 0, "C,C", "these columns in this order: id, name, state, done, top1, best_top1, best_at, loss, images_per_sec, ttt_seconds, left, user, priority, tags, submitted, finished, disk_bytes, reason, note", "id|name|state|done|top1|best_top1|best_at|loss|images_per_sec|ttt_seconds|left|user|priority|tags|submitted|finished|disk_bytes|reason|note"),
        OPTION("output", 'o', "wide", "show more columns and do not truncate; json: the same as --json", "wide|json"),
        OPTION("group", 0, "KEY", "groups instead of jobs: by tag, or by a key, e.g. optimizer.name", "tag|optimizer.name|model.arch|batch_per_worker|lr.base|precision"),
        OPTION("limit", 0, "N", "at most N jobs or groups (20)", NULL),
        OPTION("after", 0, "NEXT", "start after this page; the previous page printed its value", NULL),
    },
};
/* clang-format on */
