/* trainctl plan: shows the plan of a job document. Needs no daemon, because it links the planner
 * used by daemon and workers and counts the images itself. */
#include "client/cmd/cmd_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/document.h"
#include "client/local.h"
#include "client/measure/speeds.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/plan/plan_build.h"
#include "common/run/weights.h"
#include "common/xalloc.h"
#include "launch/launch.h"

static const char *plan_remark_on(const struct plan *plan, const char *key)
{
    const json_t *entry = json_object_get(plan->explain, key);
    const char *note = json_string_value(json_object_get(entry, "note"));

    if (strcmp(key, "memory_bytes_per_worker") == 0)
        return "an estimate";
    return note ? note : json_string_value(json_object_get(entry, "formula"));
}

static void plan_count_row(struct libscols_table *table, const struct plan *plan, const char *key,
                           int64_t count)
{
    char text[FORMAT_BYTES];

    snprintf(text, sizeof text, "%lld", (long long)count);
    table_row(table, key, text, plan_remark_on(plan, key));
}

static void plan_rate_row(struct libscols_table *table, const struct plan *plan, const char *key,
                          double rate)
{
    char text[FORMAT_BYTES];

    snprintf(text, sizeof text, "%.10g", rate);
    table_row(table, key, text, plan_remark_on(plan, key));
}

static void plan_band_row(struct libscols_table *table, const char *name,
                          char *format(char *text, size_t bytes, double value),
                          const struct plan_band *band)
{
    char value[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES], text[3 * FORMAT_BYTES];

    snprintf(text, sizeof text, "%s to %s", format(low, sizeof low, band->low),
             format(high, sizeof high, band->high));
    table_row(table, name, format(value, sizeof value, band->value), text);
}

static void plan_threads_row(struct libscols_table *table, const struct plan *plan)
{
    const json_t *row = json_object_get(plan->explain, "threads_per_worker");
    const json_t *threads = json_object_get(row, "value");
    char text[32];

    snprintf(text, sizeof text, "%lld", (long long)json_integer_value(threads));
    if (row)
        table_row(table, "threads_per_worker", json_is_integer(threads) ? text : "by Slurm",
                  json_is_integer(threads)
                      ? plan_remark_on(plan, "threads_per_worker")
                      : "a node's cores / workers_per_node, when it is submitted");
}

static void plan_env_row(struct libscols_table *table, const struct plan *plan)
{
    const json_t *variables = json_object_get(json_object_get(plan->explain, "env"), "value");
    char count[32], *words = NULL;
    const json_t *variable;
    size_t i, bytes;

    if (!variables)
        return;
    FILE *out = must_alloc(open_memstream(&words, &bytes));
    json_array_foreach (variables, i, variable)
        fprintf(out, "%s%s", i ? " " : "", json_string_value(variable));
    fclose(out);
    snprintf(count, sizeof count, "%zu", json_array_size(variables));
    table_row(table, "env", count, words);
    free(words);
}

enum { SIZES_LISTED = 16 };

static void plan_sizes_row(struct libscols_table *table, const struct plan *plan)
{
    char value[FORMAT_BYTES] = "", remark[FORMAT_BYTES + 256] = "";
    size_t n = plan->size_count;

    if (n < 2)
        return;
    snprintf(value, sizeof value, "%lld to %lld", (long long)plan->sizes[0].size,
             (long long)plan->sizes[n - 1].size);
    if (n > SIZES_LISTED)
        snprintf(remark, sizeof remark,
                 "%zu sizes, from step %lld to step %lld; --explain lists them", n,
                 (long long)plan->sizes[1].step, (long long)plan->sizes[n - 1].step);
    for (size_t i = 1; i < n && n <= SIZES_LISTED; i++) {
        size_t used = strlen(remark);
        snprintf(remark + used, sizeof remark - used, "%s%lld from step %lld", i > 1 ? ", " : "",
                 (long long)plan->sizes[i].size, (long long)plan->sizes[i].step);
    }
    table_row(table, "image_sizes", value, remark);
}

static void plan_phase_rows(struct libscols_table *table, const struct plan *plan)
{
    for (size_t i = 0; i < plan->phase_count && plan->phase_count > 1; i++) {
        const struct plan_phase *p = &plan->phases[i];
        int64_t end = plan_phase_end(plan, i);
        char name[32], value[32], remark[256];

        end = end < plan->train_steps ? end : plan->train_steps;
        if (end <= p->step)
            return;
        snprintf(name, sizeof name, "phase %zu", i + 1);
        snprintf(value, sizeof value, "%lld", (long long)p->global_batch);
        snprintf(remark, sizeof remark,
                 "images a step, %lld a worker, of %lld pixels, epochs %.4g to %.4g: %lld steps, "
                 "learning rate %.4g to %.4g",
                 (long long)p->batch_per_worker, (long long)p->size, p->epoch,
                 plan_epochs_after(plan, end), (long long)(end - p->step),
                 lr_at(&plan->lr, p->step), lr_at(&plan->lr, end - 1));
        table_row(table, name, value, remark);
    }
}

static void plan_print_table(const struct plan *plan)
{
    struct libscols_table *table = table_create(0, "name,value>,remark|");
    const json_t *workers = json_object_get(plan->explain, "workers_per_node");
    char memory[FORMAT_BYTES];
    const char *key;
    json_t *entry;

    json_object_foreach (plan->explain, key,
                         entry) { /* omit those that depend on the data: names with a dot */
        char *value = print_value(json_object_get(entry, "value"));
        if (strchr(key, '.'))
            table_row(table, key, value, json_get_text(entry, "source", ""));
        free(value);
    }
    if (plan->mode == JOB_MODE_TRAIN) {
        plan_count_row(table, plan, "train_images", plan->train_images);
        plan_count_row(table, plan, "global_batch", plan->global_batch);
        plan_count_row(table, plan, "batch_per_node", plan->batch_per_node);
    }
    plan_count_row(table, plan, "world_size", plan->world_size);
    if (workers)
        plan_count_row(table, plan, "workers_per_node", json_get_integer(workers, "value", 0));
    plan_threads_row(table, plan);
    plan_env_row(table, plan);
    if (plan->mode == JOB_MODE_TRAIN) {
        plan_count_row(table, plan, "steps_per_epoch", plan->steps_per_epoch);
        plan_count_row(table, plan, "warmup_steps", plan->warmup_steps);
        plan_count_row(table, plan, "train_steps", plan->train_steps);
        plan_sizes_row(table, plan);
        plan_phase_rows(table, plan);
        plan_rate_row(table, plan, "start_lr", plan->start_lr);
        plan_rate_row(table, plan, "peak_lr", plan->peak_lr);
    }
    plan_count_row(table, plan, "eval_images", plan->eval_images);
    table_row(table, "memory_bytes_per_worker",
              format_size(memory, sizeof memory, (double)plan->memory_bytes_per_worker),
              plan_remark_on(plan, "memory_bytes_per_worker"));
    const struct plan_predicted *predicted = &plan->predicted;
    if (predicted->known) {
        plan_band_row(table, "images_per_sec", format_rate, &predicted->images_per_sec);
        plan_band_row(table, "ttt_seconds", format_duration, &predicted->ttt_seconds);
        if (!isnan(predicted->kwh.value))
            plan_band_row(table, "kwh", format_number, &predicted->kwh);
    } else if (plan->mode == JOB_MODE_TRAIN) {
        table_row(table, "images_per_sec", "unknown", "");
        table_row(table, "ttt_seconds", "unknown", "");
    }
    table_finish(table);
}

void plan_print_warnings(FILE *out, const struct plan *plan)
{
    json_t *warning;
    size_t i;

    if (json_array_size(plan->warnings))
        putc('\n', out);
    json_array_foreach (plan->warnings, i, warning)
        print_wrapped(out, "warning: ", 2, json_string_value(warning));
}

/* none: the text for null. The caller frees the result. */
static char *plan_value_words(const json_t *value, const char *none)
{
    char text[40];

    if (json_is_null(value) || !value)
        return xstrdup(none);
    if (!json_is_real(value))
        return print_value(value);
    snprintf(text, sizeof text, "%.10g", json_real_value(value));
    return xstrdup(text);
}

/* Formats as "nodes x workers, with nodes = 2, workers = 4". */
static char *plan_formula_words(const json_t *entry)
{
    json_t *inputs = json_object_get(entry, "inputs"), *value;
    const char *name, *comma = ", with ";
    char *words = NULL;
    size_t bytes = 0;
    FILE *out = must_alloc(open_memstream(&words, &bytes));

    fputs(json_string_value(json_object_get(entry, "formula")), out);
    json_object_foreach (inputs, name, value) {
        char *text = plan_value_words(value, "null");
        fprintf(out, "%s%s = %s", comma, name, text);
        comma = ", ";
        free(text);
    }
    fclose(out);
    return words;
}

static void plan_print_entry(const char *key, const json_t *entry)
{
    static const struct {
        const char *key, *label;
    } rest[] = {
        {"note",   "    "              },
        {"change", "    To change it: "},
        {"source", "    Source: "      }
    };
    const char *meaning = json_string_value(json_object_get(entry, "meaning"));
    char *value = plan_value_words(json_object_get(entry, "value"), "unknown"),
         *formula = plan_formula_words(entry);

    printf("%s%s = %s%s\n", client.color ? "\033[1m" : "", key, value,
           client.color ? "\033[0m" : "");
    if (meaning)
        print_wrapped(stdout, "    ", 6, meaning);
    print_wrapped(stdout, "    Formula: ", 6, formula);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        const char *text = json_string_value(json_object_get(entry, rest[i].key));
        if (text)
            print_wrapped(stdout, rest[i].label, 6, text);
    }
    putchar('\n');
    free(formula);
    free(value);
}

static void plan_print(const struct plan *plan, bool explained)
{
    const json_t *predicted = json_object_get(plan->explain, "predicted");
    const char *key, *note = json_string_value(json_object_get(predicted, "note"));
    json_t *entry;

    if (client.json) {
        json_t *out = plan_to_json(plan);
        print_json(out);
        json_decref(out);
        return;
    }
    if (!explained)
        plan_print_table(plan);
    else
        json_object_foreach (plan->explain, key, entry)
            plan_print_entry(key, entry);
    if (!plan->predicted.known && plan->mode == JOB_MODE_TRAIN && note) {
        putchar('\n');
        print_wrapped(stdout, "images_per_sec: ", 2, note);
    }
    plan_print_warnings(stdout, plan);
}

static json_t *plan_differences_of(json_t *a, json_t *b)
{
    json_t *values[] = {a, b}, *differences = json_array();

    json_differences(values, 2, differences);
    json_decref(a);
    json_decref(b);
    return differences;
}

static json_t *plan_numbers(const struct plan *plan)
{
    json_t *json = plan_to_json(plan), *predicted = json_object_get(json, "predicted");

    json_object_del(json, "explain");
    json_object_del(json, "warnings");
    json_object_del(predicted, "images_per_second"); /* duplicates images_per_sec */
    return json;
}

static char *plan_rounded_words(const json_t *value)
{
    char text[40];

    if (!json_is_real(value))
        return plan_value_words(value, "null");
    snprintf(text, sizeof text, "%.6g", json_real_value(value));
    return xstrdup(text);
}

static void plan_print_differences(const struct cmd_args *args, const char *what,
                                   const json_t *differences)
{
    const json_t *difference;
    char key[PROBLEM_KEY_BYTES];
    size_t i;

    if (json_array_size(differences) == 0) {
        printf("The %s are the same.\n", what);
        return;
    }
    printf("Differences between the %s:\n", what);
    struct libscols_table *table = table_create(1, "");
    table_column(table, "", 0);
    table_column(table, args->operands[0], TABLE_RIGHT | TABLE_WRAP);
    table_column(table, args->operands[1], TABLE_RIGHT | TABLE_WRAP);
    json_array_foreach (differences, i, difference) {
        const json_t *values = json_object_get(difference, "values");
        char *a = plan_rounded_words(json_array_get(values, 0));
        char *b = plan_rounded_words(json_array_get(values, 1));
        table_row(table, problem_key(json_get_text(difference, "pointer", ""), key), a, b);
        free(a);
        free(b);
    }
    table_finish(table);
}

void planned_clear(struct planned *p)
{
    plan_destroy(p->plan);
    job_spec_destroy(p->spec);
}

static void plan_warn_of_slots(const struct job_spec *spec, json_t *remarks)
{
    long long threads = local_threads(spec), slots = launch_node_slots(spec->cluster.smt);
    double wanted = (double)spec->cluster.workers_per_node * (double)threads;

    if (spec->cluster.launcher == JOB_LAUNCHER_LOCAL && spec->cluster.nodes == 1 &&
        !job_spec_names_hosts(spec) && wanted > (double)slots)
        json_array_append_new(
            remarks,
            json_sprintf(
                "the job needs %lld x %lld = %.0f slots (workers_per_node x threads_per_worker), "
                "but "
                "this machine has %lld, so it would be rejected: use fewer workers or threads",
                (long long)spec->cluster.workers_per_node, threads, wanted, slots));
}

static int plan_make_inputs(struct job_spec *spec, const struct cmd_args *args, struct planned *p,
                            struct plan_inputs *inputs, json_t *remarks, struct problems *problems,
                            struct error *e)
{
    if (document_state_images(spec, args, e) || document_count(spec, inputs, remarks, e) ||
        speeds_choose_workers(spec, args, &p->workers, inputs, problems, e))
        return -(int)e->code;
    plan_warn_of_slots(spec, remarks);
    if (!job_spec_leaves_workers(spec))
        inputs->speed = speeds_find(spec);
    if (!(inputs->speed.image_seconds > 0))
        inputs->speed = p->workers.speed;
    return 0;
}

int plan_file(const char *path, const struct cmd_args *args, struct planned *p)
{
    struct problems problems = {0};
    struct plan_inputs inputs;
    struct error e;
    json_t *remarks = json_array();
    int code = document_open(path, args, &p->spec);

    if (code == 0 && plan_make_inputs(p->spec, args, p, &inputs, remarks, &problems, &e)) {
        code = cmd_fail(&e);
    } else if (code == 0) {
        /* A file missing here may exist on the daemon's machine. */
        weights_check(p->spec, true, &problems);
        p->plan = problems.count ? NULL : plan_make(p->spec, &inputs, &problems);
        if (p->plan)
            json_array_extend(p->plan->warnings, remarks);
        else
            code = document_refuse(&problems);
    }
    json_decref(remarks);
    problems_clear(&problems);
    return code;
}

static void plan_show_differences(const struct cmd_args *args, const struct planned *a,
                                  const struct planned *b)
{
    json_t *documents = plan_differences_of(job_spec_to_json(a->spec), job_spec_to_json(b->spec));
    json_t *plans = plan_differences_of(plan_numbers(a->plan), plan_numbers(b->plan));

    if (client.json) {
        json_t *out = json_pack("{s:[s,s], s:O, s:O}", "files", args->operands[0],
                                args->operands[1], "differences", documents, "plan", plans);
        print_json(out);
        json_decref(out);
    } else {
        plan_print_differences(args, "documents", documents);
        putchar('\n');
        plan_print_differences(args, "plans", plans);
    }
    json_decref(documents);
    json_decref(plans);
}

static int cmd_plan(const struct cmd_args *args)
{
    struct planned a = {0}, b = {0};
    bool diff = cmd_flag(args, "diff");

    if (diff != (args->operand_count == 2))
        return cmd_usage(args->cmd, diff ? "--diff takes two files" : "two files need --diff");
    int code = plan_file(args->operands[0], args, &a);
    if (code == 0 && diff)
        code = plan_file(args->operands[1], args, &b);
    if (code == 0 && diff)
        plan_show_differences(args, &a, &b);
    else if (code == 0)
        plan_print(a.plan, cmd_flag(args, "explain"));
    planned_clear(&a);
    planned_clear(&b);
    return code;
}

/* clang-format off */
const struct cmd cmd_plan_entry = {
    .name = "plan", .synopsis = "[--explain] [--set KEY=VALUE...] FILE|- | --diff FILE FILE",
    .help = "show a job's batch size, steps, learning rate and memory", .example = "trainctl plan --set batch_per_worker=32 job.json",
    .run = cmd_plan, .completion = "file", .operands = {1, 2},
    .options = {
        OPTION("explain", 'e', NULL, "show the formula, inputs and source of each number, and how to change it", NULL),
        OPTION("diff", 'd', NULL, "show where two documents and their plans differ", NULL),
        OPTION("set", 0, "KEY=VALUE", "change a key of the document first, e.g. lr.base=0.2", "key"),
        OPTION("train-images", 0, "N", "number of training images, instead of counting them", NULL),
        OPTION("eval-images", 0, "N", "number of evaluation images", NULL),
        OPTION("node-cores", 0, "N", "cores per node, for cluster.workers_per_node 0 or threads_per_worker 0 (those of this machine)", NULL),
    },
};
/* clang-format on */
