/* The columns of trainctl list: one table. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cmd/find/list.h"
#include "client/job.h"
#include "client/views/human.h"
#include "client/views/table.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"

enum column {
    ID,
    STARRED,
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
    REASON,
    NOTE,
    COLUMNS
};

/* name: for --columns. shown: without it, if there is room. */
static const struct {
    const char *name, *heading;
    int flags;
    int width; /* with what is between columns */
    enum { ALWAYS, IF_SOME, WIDE_ONLY, IF_ASKED } shown;
} columns[COLUMNS] = {
    [ID] = {"id",             "ID",        TABLE_RIGHT, 6,  ALWAYS   },
    [STARRED] = {"starred",        "*",         0,           2,  IF_SOME  },
    [NAME] = {"name",           "NAME",      TABLE_TRUNC, 2,  ALWAYS   },
    [STATE] = {"state",          "STATE",     0,           12, ALWAYS   },
    [DONE] = {"done",           "DONE",      TABLE_RIGHT, 7,  ALWAYS   },
    [TOP1] = {"top1",           "TOP-1",     TABLE_RIGHT, 9,  ALWAYS   },
    [BEST] = {"best_top1",      "BEST",      TABLE_RIGHT, 9,  IF_SOME  },
    [BEST_AT] = {"best_at",        "BEST AT",   TABLE_RIGHT, 14, WIDE_ONLY},
    [LOSS] = {"loss",           "LOSS",      TABLE_RIGHT, 9,  IF_ASKED },
    [RATE] = {"images_per_sec", "IMAGES/S",  TABLE_RIGHT, 10, ALWAYS   },
    [TIME] = {"ttt_seconds",    "TIME",      TABLE_RIGHT, 13, WIDE_ONLY},
    [LEFT] = {"left",           "LEFT",      TABLE_RIGHT, 13, ALWAYS   },
    [USER] = {"user",           "USER",      0,           16, WIDE_ONLY},
    [PRIORITY] = {"priority",       "PRIORITY",  TABLE_RIGHT, 10, WIDE_ONLY},
    [TAGS] = {"tags",           "TAGS",      0,           16, WIDE_ONLY},
    [SUBMITTED] = {"submitted",      "SUBMITTED", TABLE_RIGHT, 13, ALWAYS   },
    [REASON] = {"reason",         "REASON",    TABLE_TRUNC, 1,  ALWAYS   },
    [NOTE] = {"note",           "NOTE",      TABLE_TRUNC, 1,  IF_ASKED },
};

#define NAME_LEAST   10
#define REASON_LEAST 16 /* fewer columns say nothing */

const char *list_column_at(size_t i)
{
    return i < COLUMNS ? columns[i].name : NULL;
}

/* What is shown, from left to right, and how much of names and reasons. */
struct layout {
    enum column order[COLUMNS];
    int count;
    int name, reason;
};

/* Would the column say something of a job? */
static bool column_has_value(enum column c, const struct job *job, const json_t *item)
{
    switch (c) {
    case TOP1:
        return !isnan(job->top1);
    case BEST:
        return !isnan(job->best_top1) && job->best_top1 != job->top1;
    case RATE:
        return !isnan(job->images_per_sec);
    case LEFT:
        return !isnan(job->estimated_start) || !isnan(job_time_left(job, clock_now()).value);
    case STARRED:
        return json_is_true(json_object_get(item, "starred"));
    case REASON:
        return *job->reason;
    default:
        return true;
    }
}

/* "-" for all jobs: no use in a narrow terminal. */
static bool column_has_values(enum column c, const json_t *jobs)
{
    const json_t *item;
    struct job job;
    size_t i;

    json_array_foreach (jobs, i, item) {
        job_read(item, &job);
        if (column_has_value(c, &job, item))
            return true;
    }
    return false;
}

static bool column_is_shown(enum column c, const json_t *jobs, bool wide)
{
    bool narrow = !wide && table_if_wide();

    switch (columns[c].shown) {
    case IF_ASKED:
        return false;
    case WIDE_ONLY:
        return wide;
    case IF_SOME:
        return column_has_values(c, jobs);
    default:
        return !(narrow && c == SUBMITTED) && (!narrow || column_has_values(c, jobs));
    }
}

/* Names and reasons share what the others leave. */
static void layout_share(struct layout *layout, const json_t *jobs, int room)
{
    const json_t *item;
    size_t i;

    layout->name = NAME_LEAST;
    json_array_foreach (jobs, i, item) {
        int length = table_width(json_get_text(item, "name", ""));
        layout->name = length > layout->name ? length : layout->name;
    }
    layout->name = layout->name < room ? layout->name : room;
    if (layout->order[layout->count - 1] != REASON)
        return;
    layout->reason = room - layout->name - 2;
    if (layout->reason < REASON_LEAST && layout->name > room / 2) { /* both are long */
        layout->name = room / 2 > NAME_LEAST ? room / 2 : NAME_LEAST;
        layout->reason = room - layout->name;
    }
    if (layout->reason >= REASON_LEAST)
        return;
    layout->name = room;
    layout->count--; /* it says nothing */
}

static struct layout make_layout(const json_t *jobs, bool wide)
{
    struct layout layout = {0};
    int used = 0;

    for (int c = 0; c < COLUMNS; c++)
        if (column_is_shown((enum column)c, jobs, wide)) {
            layout.order[layout.count++] = (enum column)c;
            used += columns[c].width;
        }
    layout_share(&layout, jobs, wide ? INT_MAX : table_room(used, NAME_LEAST));
    return layout;
}

/* Those that were asked for, in their order and whole. */
static struct layout asked_layout(const char *names)
{
    struct layout layout = {.name = INT_MAX, .reason = INT_MAX};

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
static const char *list_format_wait(const struct job *job, char text[HUMAN_BYTES + 8])
{
    char in[HUMAN_BYTES];

    if (isnan(job->estimated_start))
        return human_duration(text, HUMAN_BYTES, job_time_left(job, clock_now()).value);
    human_duration(in, sizeof in, fmax(0, job->estimated_start - clock_now()));
    snprintf(text, HUMAN_BYTES + 8, "in %s", in);
    return text;
}

#define TEXT_BYTES (HUMAN_BYTES + 8)

/* A short value; text has room for it. */
static const char *list_short(enum column c, const struct job *job, const json_t *json,
                              char text[TEXT_BYTES])
{
    switch (c) {
    case ID:
        snprintf(text, TEXT_BYTES, "%ld", job->id);
        return text;
    case STARRED:
        return json_is_true(json_object_get(json, "starred")) ? "*" : "";
    case STATE:
        return job->state;
    case DONE:
        snprintf(text, TEXT_BYTES, "%.0f %%", floor(100 * job_progress(job)));
        return text;
    case TOP1:
        return human_percent(text, TEXT_BYTES, job->top1);
    case BEST:
        return human_percent(text, TEXT_BYTES, job->best_top1);
    case BEST_AT:
        snprintf(text, TEXT_BYTES, isnan(job->best_top1) ? "-" : "step %.0f", job->best_top1_step);
        return text;
    case LOSS:
        return human_number(text, TEXT_BYTES, job->loss);
    case RATE:
        return human_number(text, TEXT_BYTES, job->images_per_sec);
    case LEFT:
        return list_format_wait(job, text);
    case TIME:
        return human_duration(text, TEXT_BYTES, job->ttt_seconds);
    case PRIORITY:
        snprintf(text, TEXT_BYTES, "%lld", (long long)json_get_integer(json, "priority", 0));
        return text;
    case SUBMITTED:
        return human_ago(text, TEXT_BYTES, clock_now() - job->created_at);
    default:
        return "";
    }
}

/* Frees words. */
static void list_set_words(struct libscols_line *line, size_t i, char *words)
{
    table_set(line, i, words);
    free(words);
}

static void list_set(struct libscols_line *line, size_t i, enum column c,
                     const struct layout *layout, const struct job *job, const json_t *json)
{
    char text[TEXT_BYTES];

    switch (c) {
    case NAME:
        table_set_cut(line, i, job->name, layout->name);
        break;
    case REASON:
        table_set_cut(line, i, job->reason, layout->reason);
        break;
    case USER:
        table_set(line, i, json_get_text(json, "submitted_by", "-"));
        break;
    case TAGS:
    case NOTE:
        list_set_words(line, i, c == TAGS ? job_tags_words(json) : job_note_words(json));
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
        fprintf(stderr, "the next page: --after %lld\n", (long long)json_integer_value(next));
    else if (json_is_string(next) && !strpbrk(json_string_value(next), "'\n"))
        fprintf(stderr, "the next page: --after '%s'\n", json_string_value(next));
}

void list_print_jobs(const json_t *answer, const char *asked, bool wide)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *item;
    struct libscols_table *table = table_create(1);
    struct layout layout = asked ? asked_layout(asked) : make_layout(jobs, wide);
    size_t i;

    for (int k = 0; k < layout.count; k++) {
        int flags = columns[layout.order[k]].flags;
        table_column(table, columns[layout.order[k]].heading,
                     wide || asked ? flags & ~TABLE_TRUNC : flags);
    }
    json_array_foreach (jobs, i, item) {
        struct libscols_line *line = table_line(table);
        struct job job;
        job_read(item, &job);
        for (int k = 0; k < layout.count; k++)
            list_set(line, (size_t)k, layout.order[k], &layout, &job, item);
    }
    table_finish(table);
    long long total = json_get_integer(answer, "total", 0);
    if (total > (long long)json_array_size(jobs))
        fprintf(stderr, "%zu of %lld jobs shown; --limit N shows more\n", json_array_size(jobs),
                total);
    list_print_next(answer);
}
