/* The columns of trainctl list: one table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd/find/list.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"

enum column {
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

/* name: for --columns. shown: without it, if there is room. */
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

const char *list_column_at(size_t i)
{
    return i < COLUMNS ? columns[i].name : NULL;
}

/* What is shown, from left to right. */
struct layout {
    enum column order[COLUMNS];
    int count;
};

/* Does it say something of some job? */
static bool column_has_values(enum column c, const json_t *jobs)
{
    const json_t *item;
    struct job job;
    size_t i;

    json_array_foreach (jobs, i, item) {
        job_read(item, &job);
        if (c == BEST && !isnan(job.best_top1) && job.best_top1 != job.top1)
            return true;
    }
    return false;
}

static bool column_is_shown(enum column c, const json_t *jobs, bool wide)
{
    return columns[c].shown == ALWAYS || (columns[c].shown == WIDE_ONLY && wide) ||
           (columns[c].shown == IF_SOME && column_has_values(c, jobs));
}

static struct layout list_columns_make_layout(const json_t *jobs, bool wide)
{
    struct layout layout = {0};

    for (int c = 0; c < COLUMNS; c++)
        if (column_is_shown((enum column)c, jobs, wide))
            layout.order[layout.count++] = (enum column)c;
    return layout;
}

/* Those that were asked for, in their order. */
static struct layout list_columns_asked_layout(const char *names)
{
    struct layout layout = {0};

    for (const char *at = names; *at && layout.count < COLUMNS; at += *at == ',') {
        size_t length = strcspn(at, ",");
        for (int c = 0; c < COLUMNS; c++)
            if (strlen(columns[c].name) == length && strncmp(columns[c].name, at, length) == 0)
                layout.order[layout.count++] = (enum column)c;
        at += length;
    }
    return layout;
}

/* Of one that waits: until it starts, as far as that is known. */
static const char *list_format_wait(const struct job *job, char text[FORMAT_BYTES + 8])
{
    char in[FORMAT_BYTES];

    if (isnan(job->estimated_start))
        return format_duration(text, FORMAT_BYTES, job_time_left(job, clock_now()).value);
    format_duration(in, sizeof in, fmax(0, job->estimated_start - clock_now()));
    snprintf(text, FORMAT_BYTES + 8, "in %s", in);
    return text;
}

#define TEXT_BYTES (FORMAT_BYTES + 8)

/* A short value; text has room for it. */
static const char *list_short(enum column c, const struct job *job, const json_t *json,
                              char text[TEXT_BYTES])
{
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
        return list_format_wait(job, text);
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

static void list_set(struct libscols_line *line, size_t i, enum column c, const struct job *job,
                     const json_t *json)
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

/* A word for the shell: a name that the list is sorted by may hold anything. */
static void list_print_next(const json_t *answer)
{
    const json_t *next = json_object_get(answer, "next");

    if (json_is_integer(next))
        fprintf(stderr, "next page: --after %lld\n", (long long)json_integer_value(next));
    else if (json_is_string(next) && !strpbrk(json_string_value(next), "'\n"))
        fprintf(stderr, "next page: --after '%s'\n", json_string_value(next));
}

void list_print_jobs(const json_t *answer, const char *asked, bool wide)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *item;
    struct libscols_table *table = table_create(1, "");
    struct layout layout =
        asked ? list_columns_asked_layout(asked) : list_columns_make_layout(jobs, wide);
    char text[FORMAT_BYTES];
    size_t i;

    for (int k = 0; k < layout.count; k++) {
        enum column c = layout.order[k];
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
    list_print_next(answer);
}
