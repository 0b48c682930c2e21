/* The groups of trainctl list --group. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cmd/find/list.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"

#define TEXT_BYTES (2 * FORMAT_BYTES)

static char *groups_jobs(const json_t *group, const char *const states[], char *text)
{
    (void)states;
    return format_count(text, TEXT_BYTES, json_get_integer(group, "jobs", 0));
}

/* Of these states together. */
static char *groups_in_states(const json_t *group, const char *const states[], char *text)
{
    const json_t *counts = json_object_get(group, "states");
    long long count = 0;

    for (size_t i = 0; states[i]; i++)
        count += json_get_integer(counts, states[i], 0);
    if (count)
        return format_count(text, TEXT_BYTES, count);
    snprintf(text, TEXT_BYTES, "-");
    return text;
}

static char *groups_best_top1(const json_t *group, const char *const states[], char *text)
{
    (void)states;
    return format_percent(text, TEXT_BYTES,
                          json_get_number(json_object_get(group, "best"), "top1", NAN));
}

/* "step 3", of the best job's number of this key; "-" where there is no best job. */
static char *groups_best_number(const json_t *group, const char *key, const char *before,
                                char *text)
{
    const json_t *best = json_object_get(group, "best");

    if (json_is_object(best))
        snprintf(text, TEXT_BYTES, "%s%lld", before, (long long)json_get_integer(best, key, 0));
    else
        snprintf(text, TEXT_BYTES, "-");
    return text;
}

static char *groups_best_job(const json_t *group, const char *const states[], char *text)
{
    (void)states;
    return groups_best_number(group, "id", "", text);
}

static char *groups_best_step(const json_t *group, const char *const states[], char *text)
{
    (void)states;
    return groups_best_number(group, "step", "step ", text);
}

static char *groups_mean_time(const json_t *group, const char *const states[], char *text)
{
    (void)states;
    return format_duration(text, TEXT_BYTES, json_get_number(group, "mean_ttt_seconds", NAN));
}

static char *groups_images(const json_t *group, const char *const states[], char *text)
{
    (void)states;
    return format_count(text, TEXT_BYTES, json_get_integer(group, "images", 0));
}

static const char *const active[] = {"queued", "starting", "running", "evaluating", NULL};
static const char *const succeeded[] = {"succeeded", NULL};
static const char *const failed[] = {"failed", NULL};
static const char *const cancelled[] = {"cancelled", NULL};

/* Behind the key's, each with what it says of a group. */
static const struct {
    const char *heading;
    char *(*words)(const json_t *group, const char *const states[], char text[TEXT_BYTES]);
    const char *const *states; /* that words counts */
    int flags;                 /* besides TABLE_RIGHT */
} columns[] = {
    {"JOBS",       groups_jobs,      NULL,      0          },
    {"ACTIVE",     groups_in_states, active,    0          },
    {"SUCCEEDED",  groups_in_states, succeeded, 0          },
    {"FAILED",     groups_in_states, failed,    0          },
    {"CANCELLED",  groups_in_states, cancelled, 0          },
    {"BEST TOP-1", groups_best_top1, NULL,      0          },
    {"OF JOB",     groups_best_job,  NULL,      0          },
    {"AT",         groups_best_step, NULL,      TABLE_SPARE},
    {"MEAN TIME",  groups_mean_time, NULL,      TABLE_SPARE},
    {"IMAGES",     groups_images,    NULL,      TABLE_SPARE},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void groups_add(struct libscols_table *table, const json_t *group)
{
    const json_t *value = json_object_get(group, "value");
    struct libscols_line *line = table_line(table);
    char text[TEXT_BYTES], *words = json_is_null(value) ? NULL : print_value(value);

    table_set(line, 0, words ? words : "-");
    free(words);
    for (size_t i = 0; i < COLUMNS; i++)
        table_set(line, i + 1, columns[i].words(group, columns[i].states, text));
}

void list_print_groups(const json_t *answer, const char *key)
{
    struct libscols_table *table = table_create(1, "");
    const json_t *groups = json_object_get(answer, "groups"), *group;
    size_t i;

    table_column(table, key, TABLE_TRUNC);
    for (i = 0; i < COLUMNS; i++)
        table_column(table, columns[i].heading, TABLE_RIGHT | columns[i].flags);
    json_array_foreach (groups, i, group)
        groups_add(table, group);
    table_finish(table);
    long long all = json_get_integer(answer, "group_count", 0);
    if (all > (long long)json_array_size(groups))
        fprintf(stderr, "%zu of %lld groups shown; --limit N shows more\n", json_array_size(groups),
                all);
}
