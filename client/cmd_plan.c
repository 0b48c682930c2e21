/*
 * trainctl plan: what a job document means. Needs no daemon: it links the planner that the daemon
 * and the workers use, and counts the images itself.
 */
#include <stdio.h>
#include <string.h>

#include "client/cmd.h"
#include "client/document.h"
#include "client/human.h"
#include "client/print.h"
#include "client/speeds.h"
#include "client/table.h"
#include "common/dataset/plan_inputs.h"

/* ---- a plan for a person */

static void add_row(struct libscols_table *table, const char *name, const char *value,
                    const char *remark)
{
    struct libscols_line *line = table_line(table);

    table_set(line, 0, name);
    table_set(line, 1, value);
    table_set(line, 2, remark);
}

/* "9.6 before lr.factor", else "nodes x batch_per_node": what is said of a number in one line. */
static const char *remark_on(const struct plan *plan, const char *key)
{
    const json_t *entry = json_object_get(plan->explain, key);
    const char *note = json_string_value(json_object_get(entry, "note"));

    if (strcmp(key, "memory_bytes_per_worker") == 0)
        return "an estimate";
    return note ? note : json_string_value(json_object_get(entry, "formula"));
}

static void count_row(struct libscols_table *table, const struct plan *plan, const char *key,
                      int64_t count)
{
    char text[HUMAN_BYTES];

    snprintf(text, sizeof text, "%lld", (long long)count);
    add_row(table, key, text, remark_on(plan, key));
}

static void rate_row(struct libscols_table *table, const struct plan *plan, const char *key,
                     double rate)
{
    char text[HUMAN_BYTES];

    snprintf(text, sizeof text, "%.10g", rate);
    add_row(table, key, text, remark_on(plan, key));
}

static void predicted_rows(struct libscols_table *table, const struct plan *plan)
{
    char value[HUMAN_BYTES], low[HUMAN_BYTES], high[HUMAN_BYTES], band[3 * HUMAN_BYTES];

    if (!plan->predicted.known)
        return;
    snprintf(band, sizeof band, "%s to %s",
             human_rate(low, sizeof low, plan->predicted.images_per_second.low),
             human_rate(high, sizeof high, plan->predicted.images_per_second.high));
    add_row(table, "images_per_second",
            human_rate(value, sizeof value, plan->predicted.images_per_second.value), band);
    snprintf(band, sizeof band, "%s to %s",
             human_duration(low, sizeof low, plan->predicted.ttt_seconds.low),
             human_duration(high, sizeof high, plan->predicted.ttt_seconds.high));
    add_row(table, "ttt_seconds",
            human_duration(value, sizeof value, plan->predicted.ttt_seconds.value), band);
}

static void print_table(const struct plan *plan)
{
    struct libscols_table *table = table_create(0);
    char memory[HUMAN_BYTES];

    table_column(table, "name", 0);
    table_column(table, "value", TABLE_RIGHT);
    table_column(table, "remark", 0);
    if (plan->mode == JOB_MODE_TRAIN) {
        count_row(table, plan, "train_images", plan->train_images);
        count_row(table, plan, "global_batch", plan->global_batch);
        count_row(table, plan, "batch_per_node", plan->batch_per_node);
    }
    count_row(table, plan, "world_size", plan->world_size);
    if (plan->mode == JOB_MODE_TRAIN) {
        count_row(table, plan, "steps_per_epoch", plan->steps_per_epoch);
        count_row(table, plan, "warmup_steps", plan->warmup_steps);
        count_row(table, plan, "train_steps", plan->train_steps);
        rate_row(table, plan, "start_lr", plan->start_lr);
        rate_row(table, plan, "peak_lr", plan->peak_lr);
    }
    count_row(table, plan, "eval_images", plan->eval_images);
    add_row(table, "memory_bytes_per_worker",
            human_size(memory, sizeof memory, (double)plan->memory_bytes_per_worker),
            remark_on(plan, "memory_bytes_per_worker"));
    predicted_rows(table, plan);
    table_finish(table);
}

static void print_warnings(const struct plan *plan)
{
    json_t *warning;
    size_t i;

    if (json_array_size(plan->warnings))
        putchar('\n');
    json_array_foreach (plan->warnings, i, warning)
        printf("warning: %s\n", json_string_value(warning));
}

/* ---- --explain */

static void print_value(const json_t *value)
{
    if (json_is_real(value))
        printf("%.10g", json_real_value(value));
    else if (json_is_string(value))
        fputs(json_string_value(value), stdout);
    else if (json_is_null(value))
        fputs("unknown", stdout);
    else
        json_dumpf(value, stdout, JSON_ENCODE_ANY);
}

static void print_entry(const char *key, const json_t *entry)
{
    json_t *inputs = json_object_get(entry, "inputs"), *value;
    const char *note = json_string_value(json_object_get(entry, "note")), *name, *comma = "";

    printf("%s = ", key);
    print_value(json_object_get(entry, "value"));
    printf("\n    %s\n", json_string_value(json_object_get(entry, "formula")));
    if (json_object_size(inputs))
        fputs("    with ", stdout);
    json_object_foreach (inputs, name, value) {
        printf("%s%s = ", comma, name);
        print_value(value);
        comma = ", ";
    }
    if (json_object_size(inputs))
        putchar('\n');
    if (note)
        printf("    %s\n", note);
    printf("    source: %s\n\n", json_string_value(json_object_get(entry, "source")));
}

static void print_explained(const struct plan *plan)
{
    const char *key;
    json_t *entry;

    json_object_foreach (plan->explain, key, entry)
        print_entry(key, entry);
}

static void print_plan(const struct plan *plan, bool explained)
{
    if (client.json) {
        json_t *out = plan_to_json(plan);
        print_json(out);
        json_decref(out);
        return;
    }
    if (explained)
        print_explained(plan);
    else
        print_table(plan);
    print_warnings(plan);
}

/* ---- the command */

static int plan_spec(struct job_spec *spec, const struct cmd_args *args,
                     const struct problems *unsupported, struct problems *problems)
{
    int64_t train_images, eval_images;
    struct plan_inputs inputs;
    struct error e;
    json_t *remarks = json_array();
    struct plan *plan = NULL;
    int code = 0;

    if (document_images(args, "train-images", &train_images, &e) ||
        document_images(args, "eval-images", &eval_images, &e)) {
        code = cmd_fail(&e);
        goto out;
    }
    if (train_images) {
        spec->data.has_train_images = true;
        spec->data.train_images = train_images;
    }
    if (document_count(spec, eval_images, &inputs, remarks, &e)) {
        code = cmd_fail(&e);
        goto out;
    }
    inputs.speed = speeds_find(spec);
    plan = plan_make(spec, &inputs, problems);
    if (!plan) {
        code = document_refuse(problems);
        goto out;
    }
    plan_warn_unsupported(plan, unsupported);
    json_array_extend(plan->warnings, remarks);
    print_plan(plan, cmd_flag(args, "explain"));
out:
    plan_destroy(plan);
    json_decref(remarks);
    return code;
}

int cmd_plan(int argc, char **argv)
{
    struct problems problems = {0}, unsupported = {0};
    struct cmd_args args;
    struct job_spec *spec;
    int code = cmd_parse(&args, argc, argv);

    if (code >= 0)
        return code;
    code = document_open(args.operands[0], &spec, &unsupported);
    if (spec)
        code = plan_spec(spec, &args, &unsupported, &problems);
    job_spec_destroy(spec);
    problems_clear(&problems);
    problems_clear(&unsupported);
    return code;
}
