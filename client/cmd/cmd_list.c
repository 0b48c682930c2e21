#include <curl/curl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/human.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"

#define LIMIT_DEFAULT 20

enum column {
    ID,
    NAME,
    STATE,
    DONE,
    TOP1,
    RATE,
    TIME,
    LEFT,
    USER,
    PRIORITY,
    SUBMITTED,
    REASON,
    COLUMNS
};

static const struct {
    const char *heading;
    int flags;
    int width;      /* with what is between columns */
    bool wide_only; /* of -o wide */
} columns[COLUMNS] = {
    [ID] = {.heading = "ID",       .flags = TABLE_RIGHT, .width = 6           },
    [NAME] = {.heading = "NAME",     .flags = TABLE_TRUNC, .width = 2           },
    [STATE] = {.heading = "STATE",    .width = 12         },
    [DONE] = {.heading = "DONE", .flags = TABLE_RIGHT,           .width = 7                     },
    [TOP1] = {.heading = "TOP-1", .flags = TABLE_RIGHT,           .width = 9},
    [RATE] = {.heading = "IMAGES/S", .flags = TABLE_RIGHT,          .width = 10                     },
    [TIME] = {.heading = "TIME", .flags = TABLE_RIGHT,          .width = 13, .wide_only = true},
    [LEFT] = {.heading = "LEFT",     .flags = TABLE_RIGHT, .width = 13    },
    [USER] = {.heading = "USER",     .width = 16,          .wide_only = true          },
    [PRIORITY] = {.heading = "PRIORITY", .flags = TABLE_RIGHT, .width = 10,     .wide_only = true},
    [SUBMITTED] = {.heading = "SUBMITTED",                     .flags = TABLE_RIGHT,                    .width = 13          },
    [REASON] = {.heading = "REASON",                     .flags = TABLE_TRUNC,                       .width = 1},
};

#define NAME_LEAST   10
#define REASON_LEAST 16 /* fewer columns say nothing */

/* What is shown of the columns, and how much of names and reasons. */
struct layout {
    bool shown[COLUMNS];
    int name, reason;
};

/* "-" for all jobs: no use in a narrow terminal. */
static bool column_has_values(enum column c, const json_t *jobs)
{
    const json_t *item;
    struct job job;
    size_t i;

    json_array_foreach (jobs, i, item) {
        job_read(item, &job);
        if ((c == TOP1 && !isnan(job.top1)) || (c == RATE && !isnan(job.images_per_sec)) ||
            (c == LEFT &&
             (!isnan(job.estimated_start) || !isnan(job_time_left(&job, clock_now()).value))))
            return true;
    }
    return c != TOP1 && c != RATE && c != LEFT;
}

static struct layout make_layout(const json_t *jobs, bool wide)
{
    struct layout layout = {.name = NAME_LEAST};
    bool narrow = !wide && table_if_wide();
    const json_t *item;
    int used = 0;
    size_t i;

    for (int c = 0; c < COLUMNS; c++) {
        layout.shown[c] = (wide || !columns[c].wide_only) && !(narrow && c == SUBMITTED) &&
                          (!narrow || column_has_values((enum column)c, jobs));
        used += layout.shown[c] ? columns[c].width : 0;
    }
    json_array_foreach (jobs, i, item) {
        int length = (int)json_string_length(json_object_get(item, "name"));
        layout.name = length > layout.name ? length : layout.name;
    }
    int room = wide ? INT_MAX : table_room(used);
    layout.name = layout.name < room ? layout.name : room;
    layout.reason = room - layout.name - 2;
    if (layout.reason < REASON_LEAST && layout.name > room / 2) { /* both are long */
        layout.name = room / 2 > NAME_LEAST ? room / 2 : NAME_LEAST;
        layout.reason = room - layout.name;
    }
    layout.shown[REASON] = layout.reason >= REASON_LEAST;
    if (!layout.shown[REASON])
        layout.name = room;
    return layout;
}

/* Of one that waits: until it starts, as far as that is known. */
static const char *list_format_wait(const struct job *job, char text[HUMAN_BYTES + 8])
{
    char in[HUMAN_BYTES];

    if (isnan(job->estimated_start))
        return human_duration(text, HUMAN_BYTES, job_time_left(job, clock_now()).value);
    human_duration(in, sizeof in, fmax(0, job->estimated_start - clock_now()));
    snprintf(text, HUMAN_BYTES + 8, "in %s", in);
    return text;
}

static void list_add_job(struct libscols_table *table, const struct layout *layout,
                         const struct job *job, const json_t *json)
{
    struct libscols_line *line = table_line(table);
    char text[HUMAN_BYTES + 8];

    snprintf(text, sizeof text, "%ld", job->id);
    table_set(line, ID, text);
    table_set_cut(line, NAME, job->name, layout->name);
    table_set(line, STATE, job->state);
    table_set_color(line, STATE, job_state_color(job->state));
    snprintf(text, sizeof text, "%.0f %%", floor(100 * job_progress(job)));
    table_set(line, DONE, text);
    table_set(line, TOP1, human_percent(text, sizeof text, job->top1));
    table_set(line, RATE, human_number(text, sizeof text, job->images_per_sec));
    table_set(line, LEFT, list_format_wait(job, text));
    table_set(line, TIME, human_duration(text, sizeof text, job->ttt_seconds));
    table_set(line, USER, json_get_text(json, "submitted_by", "-"));
    snprintf(text, sizeof text, "%lld", json_get_integer(json, "priority", 0));
    table_set(line, PRIORITY, text);
    table_set(line, SUBMITTED, human_ago(text, sizeof text, clock_now() - job->created_at));
    table_set_cut(line, REASON, job->reason, layout->reason);
}

/* A word for the shell: a name that the list is sorted by may hold anything. */
static void list_print_next(const json_t *answer)
{
    const json_t *next = json_object_get(answer, "next");

    if (json_is_integer(next))
        fprintf(stderr, "the next page: --after %lld\n", (long long)json_integer_value(next));
    else if (json_is_string(next) && !strpbrk(json_string_value(next), "'\n"))
        fprintf(stderr, "the next page: --after '%s'\n", json_string_value(next));
}

static void print_jobs(const json_t *answer, bool wide)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *item;
    struct libscols_table *table = table_create(1);
    struct layout layout = make_layout(jobs, wide);
    size_t i;

    for (int c = 0; c < COLUMNS; c++)
        table_column(table, columns[c].heading,
                     (wide ? columns[c].flags & ~TABLE_TRUNC : columns[c].flags) |
                         (layout.shown[c] ? 0 : SCOLS_FL_HIDDEN));
    json_array_foreach (jobs, i, item) {
        struct job job;
        job_read(item, &job);
        list_add_job(table, &layout, &job, item);
    }
    table_finish(table);
    long long total = json_get_integer(answer, "total", 0);
    if (total > (long long)json_array_size(jobs))
        fprintf(stderr, "%zu of %lld jobs shown; --limit N shows more\n", json_array_size(jobs),
                total);
    list_print_next(answer);
}

/* "/v1/jobs?limit=20&user=eve": the caller frees it. */
static char *list_path(const struct cmd_args *args, long limit)
{
    static const struct {
        const char *option, *parameter;
    } filters[] = {
        {"state", "state"},
        {"user",  "user" },
        {"name",  "name" },
        {"sweep", "sweep"},
        {"find",  "q"    },
        {"sort",  "sort" },
        {"after", "after"},
    };
    struct buffer path = BUFFER((size_t)64 << 10);

    buffer_printf(&path, "/v1/jobs?limit=%ld", limit);
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        const char *value = cmd_value(args, filters[i].option);
        char *escaped = value ? curl_easy_escape(NULL, value, 0) : NULL;
        if (escaped)
            buffer_printf(&path, "&%s=%s", filters[i].parameter, escaped);
        curl_free(escaped);
    }
    return buffer_take(&path, NULL);
}

static void print_none(const struct cmd_args *args)
{
    const char *state = cmd_value(args, "state");
    bool filtered = cmd_value(args, "user") || cmd_value(args, "name") ||
                    cmd_value(args, "sweep") || cmd_value(args, "find");

    if (filtered)
        puts("no job fits");
    else if (state)
        printf("there is no job in state %s\n", state);
    else
        puts("no jobs yet: submit one with \"trainctl submit FILE\"");
}

static int cmd_list(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    json_t *answer;
    long limit = LIMIT_DEFAULT;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    const char *count = cmd_value(&args, "limit"), *state = cmd_value(&args, "state");
    const char *output = cmd_value(&args, "output");
    if ((count && cmd_number(count, "limit", 1, 1000, &limit, &e) < 0) ||
        (state && cmd_words(state, "state", cmd_state_at, &e)))
        return cmd_fail(&e);
    if (output && strcmp(output, "wide") != 0)
        return cmd_usage(args.cmd, "--output takes \"wide\", not \"%s\"; --json gives JSON",
                         output);
    char *path = list_path(&args, limit);
    int code = path ? api_get(path, &answer, &e)
                    : error_set(&e, ERR_USAGE, "the words to find are too long");
    free(path);
    if (code < 0)
        return cmd_fail(&e);
    if (client.json)
        print_json(answer);
    else if (json_array_size(json_object_get(answer, "jobs")) == 0)
        print_none(&args);
    else
        print_jobs(answer, output != NULL);
    json_decref(answer);
    return 0;
}

/* clang-format off */
const struct cmd cmd_list_entry = {
    .name = "list",
    .synopsis = "[--state S] [--user U] [--name N] [--sweep ID] [--find WORDS] [--sort KEY] [--limit N] [--after NEXT] [-o wide]",
    .help = "list jobs, newest first",
    .run = cmd_list,
    .completion = "none",
    .options = {
        {"state", 0, "S", "only jobs in these states, as in running,queued", "state"},
        {"user", 0, "U", "only jobs of this user or token", NULL},
        {"name", 0, "N", "only jobs whose name contains N", NULL},
        {"sweep", 0, "ID", "only jobs of this sweep", "sweep"},
        {"find", 0, "WORDS", "only jobs with these words in their id, name, reason, user, network or data", NULL},
        {"sort", 0, "KEY", "newest, name, priority, top1, loss, images_per_sec, ttt_seconds or finished_at", "newest|name|priority|top1|loss|images_per_sec|ttt_seconds|finished_at"},
        {"output", 'o', "wide", "show more columns and do not truncate", "wide|"},
        {"limit", 0, "N", "at most N jobs (20)", NULL},
        {"after", 0, "NEXT", "start after this page; the previous page printed its value", NULL},
    },
};
/* clang-format on */
