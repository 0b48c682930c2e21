/* The groups of trainctl list --group. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cmd/find/list.h"
#include "client/views/human.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"

static const char *const active[] = {"queued", "starting", "running", "evaluating", NULL};
static const char *const succeeded[] = {"succeeded", NULL};
static const char *const failed[] = {"failed", NULL};
static const char *const cancelled[] = {"cancelled", NULL};

/* Behind the key's. */
static const struct {
    const char *heading;
    const char *const *states; /* what it counts; NULL: something else */
    bool best;                 /* it is of the best job */
} columns[] = {
    {"JOBS",       NULL,      false},
    {"ACTIVE",     active,    false},
    {"SUCCEEDED",  succeeded, false},
    {"FAILED",     failed,    false},
    {"CANCELLED",  cancelled, false},
    {"BEST TOP-1", NULL,      true },
    {"OF JOB",     NULL,      true },
    {"AT",         NULL,      true },
    {"MEAN TIME",  NULL,      false},
    {"IMAGES",     NULL,      false},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

/* Of these states together. */
static long long groups_count(const json_t *group, const char *const names[])
{
    const json_t *states = json_object_get(group, "states");
    long long count = 0;

    for (size_t i = 0; names[i]; i++)
        count += json_get_integer(states, names[i], 0);
    return count;
}

/* "-" for all groups: no use in a narrow terminal. */
static bool groups_lack(const json_t *groups, size_t column)
{
    const char *const *states = columns[column].states;
    const json_t *group;
    size_t i;

    json_array_foreach (groups, i, group)
        if ((!states && !columns[column].best) || (states && groups_count(group, states)) ||
            (columns[column].best && json_is_object(json_object_get(group, "best"))))
            return false;
    return true;
}

static void groups_add(struct libscols_table *table, const json_t *group)
{
    const json_t *best = json_object_get(group, "best"), *value = json_object_get(group, "value");
    struct libscols_line *line = table_line(table);
    char text[2 * HUMAN_BYTES], *words = json_is_null(value) ? NULL : print_value(value);

    table_set(line, 0, words ? words : "-");
    free(words);
    table_set(line, 1, human_count(text, sizeof text, json_get_integer(group, "jobs", 0)));
    for (size_t i = 0; i < COLUMNS; i++) {
        long long count = columns[i].states ? groups_count(group, columns[i].states) : 0;
        if (columns[i].states)
            table_set(line, i + 1, count ? human_count(text, sizeof text, count) : "-");
    }
    table_set(line, 6, human_percent(text, sizeof text, json_get_number(best, "top1", NAN)));
    snprintf(text, sizeof text, json_is_object(best) ? "%lld" : "-",
             (long long)json_get_integer(best, "id", 0));
    table_set(line, 7, text);
    snprintf(text, sizeof text, json_is_object(best) ? "step %lld" : "-",
             (long long)json_get_integer(best, "step", 0));
    table_set(line, 8, text);
    table_set(line, 9,
              human_duration(text, sizeof text, json_get_number(group, "mean_ttt_seconds", NAN)));
    table_set(line, 10, human_count(text, sizeof text, json_get_integer(group, "images", 0)));
}

void list_print_groups(const json_t *answer, const char *key)
{
    struct libscols_table *table = table_create(1);
    const json_t *groups = json_object_get(answer, "groups"), *group;
    size_t i;

    table_column(table, key, 0);
    for (i = 0; i < COLUMNS; i++)
        table_column(table, columns[i].heading,
                     TABLE_RIGHT | (groups_lack(groups, i) ? table_if_wide() : 0));
    json_array_foreach (groups, i, group)
        groups_add(table, group);
    table_finish(table);
    long long all = json_get_integer(answer, "group_count", 0);
    if (all > (long long)json_array_size(groups))
        fprintf(stderr, "%zu of %lld groups shown; --limit N shows more\n", json_array_size(groups),
                all);
}
