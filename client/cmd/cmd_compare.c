#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"
#include "common/problem.h"

enum jobs { ALL_JOBS, TRAININGS, EVALUATIONS };

struct result {
    const char *name;
    size_t offset;
    char *(*words)(char *text, size_t bytes, double value);
    int better; /* 1: higher is better, -1: lower, 0: neither */
    enum jobs of;
};

static char *compare_steps_words(char *text, size_t bytes, double value)
{
    return isnan(value) ? format_number(text, bytes, value)
                        : format_count(text, bytes, (long long)value);
}

static const struct result results[] = {
    {"steps",            offsetof(struct job, step),             compare_steps_words, 0,  ALL_JOBS   },
    {"epoch",            offsetof(struct job, epoch),            format_number,       0,  ALL_JOBS   },
    {"loss",             offsetof(struct job, loss),             format_number,       -1, ALL_JOBS   },
    {"top-1",            offsetof(struct job, top1),             format_percent,      1,  ALL_JOBS   },
    {"best top-1",       offsetof(struct job, best_top1),        format_percent,      1,  ALL_JOBS   },
    {"best at step",     offsetof(struct job, best_top1_step),   compare_steps_words, 0,  ALL_JOBS   },
    {"top-5",            offsetof(struct job, top5),             format_percent,      1,  ALL_JOBS   },
    {"speed",            offsetof(struct job, images_per_sec),   format_rate,         1,  ALL_JOBS   },
    {"time to train",    offsetof(struct job, ttt_seconds),      format_duration,     -1, TRAININGS  },
    {"time to evaluate", offsetof(struct job, ttt_seconds),      format_duration,     -1, EVALUATIONS},
    {"J per image",      offsetof(struct job, joules_per_image), format_number,       -1, ALL_JOBS   },
    {"kWh",              offsetof(struct job, kwh),              format_number,       -1, ALL_JOBS   },
    {"node-hours",       offsetof(struct job, node_hours),       format_number,       -1, ALL_JOBS   },
    {"cost",             offsetof(struct job, cost),             format_number,       -1, ALL_JOBS   },
    {"global batch",     offsetof(struct job, global_batch),     compare_steps_words, 0,  ALL_JOBS   },
};

static double compare_value(const struct job *job, const struct result *result)
{
    if (result->of != ALL_JOBS && job_evaluates_only(job) != (result->of == EVALUATIONS))
        return NAN;
    return *(const double *)((const char *)job + result->offset);
}

/* Returns -1 if no job has the value or all are equal. */
static int compare_best_of(const struct job *jobs, int count, const struct result *result)
{
    int best = -1, different = 0;

    for (int i = 0; i < count; i++) {
        double value = compare_value(&jobs[i], result);
        if (isnan(value))
            continue;
        different += best >= 0 && value != compare_value(&jobs[best], result);
        if (best < 0 || result->better * (value - compare_value(&jobs[best], result)) > 0)
            best = i;
    }
    return different && result->better ? best : -1;
}

static struct libscols_table *compare_make_table(const struct job *jobs, int count)
{
    struct libscols_table *table = table_create(1, "");
    char text[FORMAT_BYTES];

    table_column(table, "", 0);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "JOB %ld", jobs[i].id);
        table_column(table, text, TABLE_RIGHT | TABLE_TRUNC);
    }
    return table;
}

static void compare_label_row(struct libscols_table *table, const json_t *list, int count,
                              const char *name, char *words(const json_t *job))
{
    struct libscols_line *line = NULL;

    for (int i = 0; i < count; i++) {
        char *text = words(json_array_get(list, (size_t)i));
        if (*text && !line) {
            line = table_line(table);
            table_set(line, 0, name);
        }
        if (line)
            table_set(line, (size_t)i + 1, text);
        free(text);
    }
}

static void compare_result_row(struct libscols_table *table, const struct job *jobs, int count,
                               const struct result *result)
{
    struct libscols_line *line = NULL;
    int best = compare_best_of(jobs, count, result);
    char text[FORMAT_BYTES];

    for (int i = 0; i < count; i++) {
        if (isnan(compare_value(&jobs[i], result)))
            continue;
        if (!line) {
            line = table_line(table);
            table_set(line, 0, result->name);
        }
        table_set(line, (size_t)i + 1,
                  result->words(text, sizeof text, compare_value(&jobs[i], result)));
        if (i == best)
            table_set_color(line, (size_t)i + 1, "green");
    }
}

static void compare_print_documents(const struct job *jobs, int count, const json_t *differences)
{
    const json_t *difference, *value;
    char key[PROBLEM_KEY_BYTES];
    size_t i, k;

    if (json_array_size(differences) == 0) {
        puts("\nThe documents are the same.");
        return;
    }
    puts("\nDifferences between the documents:");
    struct libscols_table *table = compare_make_table(jobs, count);
    json_array_foreach (differences, i, difference) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, problem_key(json_get_text(difference, "pointer", ""), key));
        json_array_foreach (json_object_get(difference, "values"), k, value) {
            char *text = print_value(value);
            table_set(line, k + 1, text);
            free(text);
        }
    }
    table_finish(table);
}

static void compare_run_row(struct libscols_table *table, const json_t *difference)
{
    struct libscols_line *line = table_line(table);
    const json_t *value;
    size_t k;

    table_setf(line, 0, "%s%s", json_get_text(difference, "words", ""),
               json_is_true(json_object_get(difference, "may_change_bits")) ? "" : " *");
    json_array_foreach (json_object_get(difference, "values"), k, value)
        table_set(line, k + 1, json_is_string(value) ? json_string_value(value) : "");
}

static void compare_print_runs(const struct job *jobs, int count, const json_t *provenance)
{
    const json_t *differences = json_object_get(provenance, "differences"),
                 *unknown = json_object_get(provenance, "unknown"), *one;
    size_t i;

    if (json_array_size(differences) > 0) {
        puts("\nDifferences between the runs (*: does not change the result):");
        struct libscols_table *table = compare_make_table(jobs, count);
        json_array_foreach (differences, i, one)
            compare_run_row(table, one);
        table_finish(table);
    } else if (json_array_size(unknown) + 1 < (size_t)count) {
        puts("\nNo recorded difference in programs, hardware or data.");
    }
    json_array_foreach (unknown, i, one)
        printf("%sNothing was recorded about the run of job %lld.\n", i ? "" : "\n",
               (long long)json_integer_value(one));
}

static void compare_print_comparison(const json_t *answer)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *item;
    struct job read[CMD_OPERANDS_MAX];
    int count = 0;
    size_t i;

    json_array_foreach (jobs, i, item)
        if (count < CMD_OPERANDS_MAX)
            job_read(item, &read[count++]);
    struct libscols_table *table = compare_make_table(read, count);
    struct libscols_line *names = table_line(table), *states = table_line(table);
    table_set(names, 0, "name");
    table_set(states, 0, "state");
    for (int k = 0; k < count; k++) {
        table_set(names, (size_t)k + 1, read[k].name);
        table_set(states, (size_t)k + 1, read[k].state);
        table_set_color(states, (size_t)k + 1, job_state_color(read[k].state));
    }
    compare_label_row(table, jobs, count, "tags", job_tags_words);
    compare_label_row(table, jobs, count, "note", job_note_words);
    for (i = 0; i < sizeof results / sizeof results[0]; i++)
        compare_result_row(table, read, count, &results[i]);
    table_finish(table);
    compare_print_documents(read, count, json_object_get(answer, "differences"));
    compare_print_runs(read, count, json_object_get(answer, "provenance"));
}

static int cmd_compare(const struct cmd_args *args)
{
    char path[64 + 21 * CMD_OPERANDS_MAX] = "/v1/compare?ids=";
    struct error e;
    long id;

    for (int i = 0; i < args->operand_count; i++) {
        size_t used = strlen(path);
        if (cmd_job_id(args->operands[i], &id, &e) < 0)
            return cmd_fail(&e);
        snprintf(path + used, sizeof path - used, "%s%ld", i ? "," : "", id);
    }
    return cmd_show_path(path, compare_print_comparison);
}

/* clang-format off */
const struct cmd cmd_compare_entry = {
    .name = "compare", .synopsis = "ID ID...", .help = "compare results, documents and runs of jobs", .example = "trainctl compare 3 7",
    .run = cmd_compare, .completion = "job", .operands = {2, CMD_OPERANDS_MAX},
};
/* clang-format on */
