#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/xalloc.h"

static void show_add_row(struct libscols_table *table, const char *name, const char *text)
{
    if (*text && strcmp(text, "-") != 0)
        table_row(table, name, text, NULL);
}

static void show_rowf(struct libscols_table *table, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void show_rowf(struct libscols_table *table, const char *name, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    show_add_row(table, name, text);
}

static void show_date_row(struct libscols_table *table, const char *name, double unix_time)
{
    char date[FORMAT_BYTES], ago[FORMAT_BYTES];

    if (isnan(unix_time))
        return;
    show_rowf(table, name, "%s (%s)", format_date(date, sizeof date, unix_time),
              format_ago(ago, sizeof ago, clock_now() - unix_time));
}

static void show_progress_rows(struct libscols_table *table, const struct job *job)
{
    char text[JOB_DONE_BYTES + 16], done[JOB_DONE_BYTES], left[JOB_LEFT_BYTES];

    if (job_evaluates_only(job) || !isnan(job->train_steps))
        show_rowf(table, "progress", "%s (%.0f %%)", job_done_words(done, sizeof done, job),
                  floor(100 * job_progress(job)));
    if (job->train_steps == 0 && !isnan(job->top1) && job->step > 0)
        show_rowf(table, "weights", "those of step %.0f", job->step);
    show_add_row(table, "epoch", format_number(text, sizeof text, job->epoch));
    show_add_row(table, "loss", format_number(text, sizeof text, job->loss));
    show_add_row(table, "learning rate", format_number(text, sizeof text, job->lr));
    show_add_row(table, "speed", format_rate(text, sizeof text, job->images_per_sec));
    show_add_row(table, "time left",
                 job_left_words(left, sizeof left, job_time_left(job, clock_now())));
    show_add_row(table, "top-1", format_percent(text, sizeof text, job->top1));
    if (!isnan(job->best_top1) && job->best_top1 != job->top1)
        show_rowf(table, "best top-1", "%s at step %.0f",
                  format_percent(left, FORMAT_BYTES, job->best_top1), job->best_top1_step);
    show_add_row(table, "top-5", format_percent(text, sizeof text, job->top5));
    show_add_row(table, job_time_label(job), format_duration(text, sizeof text, job->ttt_seconds));
}

static void show_plan_rows(struct libscols_table *table, const json_t *plan)
{
    char text[2 * FORMAT_BYTES + 8], part[FORMAT_BYTES], images[FORMAT_BYTES];
    const json_t *batch = json_object_get(plan, "global_batch");

    if (!json_is_number(batch))
        return;
    long long ranks = json_integer_value(json_object_get(plan, "world_size"));
    show_rowf(table, "global batch", "%s images over %s %s",
              format_count(part, sizeof part, json_integer_value(batch)),
              format_count(images, sizeof images, ranks), ranks == 1 ? "worker" : "workers");
    show_add_row(
        table, "peak learning rate",
        format_number(text, sizeof text, json_number_value(json_object_get(plan, "peak_lr"))));
    show_add_row(
        table, "training images",
        format_count(text, sizeof text, json_integer_value(json_object_get(plan, "train_images"))));
}

/* Formats as "0.12 kWh (measured), 3.2 J per image". */
static void show_energy_rows(struct libscols_table *table, const struct job *job)
{
    char text[3 * FORMAT_BYTES], kwh[FORMAT_BYTES], each[FORMAT_BYTES];

    if (!isnan(job->kwh)) {
        int used = snprintf(text, sizeof text, "%s kWh (%s)",
                            format_number(kwh, sizeof kwh, job->kwh), job->energy_source);
        if (!isnan(job->joules_per_image))
            snprintf(text + used, sizeof text - (size_t)used, ", %s J per image",
                     format_number(each, sizeof each, job->joules_per_image));
        show_add_row(table, "energy", text);
    } else if (!isnan(job->node_hours)) {
        show_add_row(table, "energy", "not available");
    }
    show_add_row(table, "node-hours", format_number(text, sizeof text, job->node_hours));
    if (isnan(job->cost))
        return;
    show_rowf(table, "cost", "%s%s%s", format_number(kwh, sizeof kwh, job->cost),
              *job->currency ? " " : "", job->currency);
}

/* Formats as "1.5 s (1.3 s to 1.7 s), actual 1.4 s: 9 % too long". */
static void show_judged_row(struct libscols_table *table, const char *name, const json_t *judged)
{
    char value[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES], actual[FORMAT_BYTES];
    char text[5 * FORMAT_BYTES];
    const json_t *error = json_object_get(judged, "error");
    double percent = 100 * json_number_value(error);

    if (!json_is_number(error))
        return;
    snprintf(
        text, sizeof text, "%s (%s to %s), actual %s: %.0f %% too %s",
        format_duration(value, sizeof value, json_number_value(json_object_get(judged, "value"))),
        format_duration(low, sizeof low, json_number_value(json_object_get(judged, "low"))),
        format_duration(high, sizeof high, json_number_value(json_object_get(judged, "high"))),
        format_duration(actual, sizeof actual,
                        json_number_value(json_object_get(judged, "actual"))),
        fabs(percent), percent < 0 ? "short" : "long");
    show_add_row(table, name, text);
}

static void show_forecast_rows(struct libscols_table *table, const json_t *forecast)
{
    char name[64];
    const json_t *one;
    size_t i;

    show_judged_row(table, "predicted", json_object_get(forecast, "ttt_seconds"));
    json_array_foreach (json_object_get(forecast, "time_left"), i, one) {
        snprintf(name, sizeof name, "time left at %.0f %%",
                 100 * json_number_value(json_object_get(one, "share")));
        show_judged_row(table, name, one);
    }
    json_array_foreach (json_object_get(forecast, "target"), i, one) {
        snprintf(name, sizeof name, "until target at %.0f %%",
                 100 * json_number_value(json_object_get(one, "share")));
        show_judged_row(table, name, one);
    }
}

/* Formats as "expected at step 400 (380 to 420), in 3 min 20 s (2 min 40 s to 4 min 10 s)". */
static void show_target_row(struct libscols_table *table, const json_t *target, bool ended)
{
    const json_t *step = json_object_get(target, "step"),
                 *left = json_object_get(target, "seconds");
    char value[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES], in[4 * FORMAT_BYTES] = "";
    char name[FORMAT_BYTES + 16], percent[FORMAT_BYTES];
    long long met = json_get_integer(target, "met_step", -1);
    bool within = json_is_true(json_object_get(target, "within_run"));

    if (!target)
        return;
    snprintf(name, sizeof name, "target %s",
             format_percent(percent, sizeof percent, json_get_number(target, "top1", NAN)));
    if (json_is_number(json_object_get(left, "value")))
        snprintf(in, sizeof in, ", in %s (%s to %s)",
                 format_duration(value, sizeof value, json_get_number(left, "value", NAN)),
                 format_duration(low, sizeof low, json_get_number(left, "low", NAN)),
                 format_duration(high, sizeof high, json_get_number(left, "high", NAN)));
    if (met >= 0)
        show_rowf(table, name, "met at step %lld", met);
    else if (ended)
        show_add_row(table, name, "not met");
    else if (json_is_number(json_object_get(step, "value")))
        show_rowf(table, name, "%s step %.0f (%.0f to %.0f)%s",
                  within ? "expected at" : "not in this run: expected at",
                  json_get_number(step, "value", 0), json_get_number(step, "low", 0),
                  json_get_number(step, "high", 0), in);
    else
        show_add_row(table, name, "unknown: too few evaluations, or no improvement");
}

static void show_starts_row(struct libscols_table *table, const struct job *job)
{
    char date[FORMAT_BYTES], in[FORMAT_BYTES];
    double left = job->estimated_start - clock_now();

    if (isnan(job->estimated_start))
        return;
    show_rowf(table, "starts", "%s (in about %s)",
              format_date(date, sizeof date, job->estimated_start),
              format_duration(in, sizeof in, left > 0 ? left : 0));
}

static void show_failure_rows(struct libscols_table *table, const struct job *job,
                              const json_t *failure)
{
    const char *reason = json_string_value(json_object_get(failure, "reason"));
    const json_t *line;
    size_t i;

    if (!reason)
        return;
    if (strncmp(job->reason, reason, strlen(reason)) != 0) /* the job's reason may begin with it */
        show_add_row(table, "first failure", reason);
    show_add_row(table, "failure label", json_get_text(failure, "label", ""));
    const char *name = "end of its log";
    json_array_foreach (json_object_get(failure, "log"), i, line) {
        const char *text = json_string_value(line);
        const char *words = text ? text + strspn(text, " ") : NULL;
        if (!text || strstr(text, reason) || strstr(reason, words))
            continue;
        show_add_row(table, name, text);
        name = "";
    }
}

/* Slurm prints "None" if there is no reason. */
static void show_slurm_row(struct libscols_table *table, const json_t *slurm)
{
    const json_t *id = json_object_get(slurm, "job_id");
    char *number = id && !json_is_null(id) ? print_value(id) : NULL;
    const char *state = json_string_value(json_object_get(slurm, "state"));
    const char *reason = json_get_text(slurm, "reason", "None");
    const char *nodes = json_string_value(json_object_get(slurm, "nodes"));
    bool has_reason = *reason && strcmp(reason, "None") != 0;

    if (!number)
        return;
    show_rowf(table, "Slurm's job", "%s%s%s%s%s%s%s", number, state ? " " : "", state ? state : "",
              nodes && *nodes ? " on " : "", nodes ? nodes : "", has_reason ? ": " : "",
              has_reason ? reason : "");
    free(number);
}

/* Shows the newest three of the last attempt; best effort. */
static void show_straggler_rows(struct libscols_table *table, const struct job *job)
{
    json_t *answer, *event;
    struct error e;
    size_t i;

    if (api_call("GET", &answer, &e, "/v1/jobs/%ld/events?types=straggler&limit=10000", job->id))
        return;
    const json_t *events = json_object_get(answer, "events");
    json_array_foreach (events, i, event)
        if (i + 3 >= json_array_size(events) &&
            json_get_number(event, "attempt", NAN) == job->attempt)
            show_add_row(table, "straggler", json_get_text(event, "message", ""));
    json_decref(answer);
}

/* Returns the own top-1 after an epoch, from the evaluation that is at most a tenth of one away;
 * NAN: none. */
static double show_top1_after(const json_t *evals, double epoch)
{
    const json_t *eval;
    size_t i;

    json_array_foreach (evals, i, eval)
        if (fabs(json_get_number(eval, "epoch", NAN) - epoch) <= 0.1)
            return json_get_number(eval, "top1", NAN);
    return NAN;
}

/* Compares with what the job's preset published for some epochs; best effort. */
static void show_published_rows(struct libscols_table *table, const struct job *job,
                                const char *preset)
{
    char own[FORMAT_BYTES], percent[FORMAT_BYTES], name[FORMAT_BYTES];
    json_t *answer = NULL, *all = NULL, *one;
    const json_t *curve = NULL, *point;
    struct error e;
    size_t i;

    if (!preset || !job->id || api_call("GET", &all, &e, "/v1/presets"))
        return;
    json_array_foreach (json_object_get(all, "presets"), i, one)
        if (strcmp(json_get_text(one, "name", ""), preset) == 0)
            curve = json_object_get(one, "top1_by_epoch");
    if (curve && !api_call("GET", &answer, &e, "/v1/jobs/%ld/evals", job->id))
        json_array_foreach (curve, i, point) {
            double epoch = json_number_value(json_array_get(point, 0));
            double top1 = show_top1_after(json_object_get(answer, "evals"), epoch);
            snprintf(name, sizeof name, "top-1, epoch %g", epoch);
            show_rowf(table, name, "%s (published: %s)", format_percent(own, sizeof own, top1),
                      format_percent(percent, sizeof percent,
                                     json_number_value(json_array_get(point, 1))));
        }
    json_decref(answer);
    json_decref(all);
}

static void show_labels(struct libscols_table *table, const json_t *json)
{
    char *tags = job_tags_words(json);
    const char *note = json_get_text(json, "note", "");

    show_add_row(table, "tags", tags);
    for (const char *what = "note"; *note; what = "") {
        char *line = xstrndup(note, strcspn(note, "\n"));
        show_add_row(table, what, *line ? line : " ");
        note += strcspn(note, "\n");
        note += *note == '\n';
        free(line);
    }
    free(tags);
}

static void show_imported_row(struct libscols_table *table, const json_t *from)
{
    const char *by = json_string_value(json_object_get(from, "submitted_by"));

    if (!json_is_object(from))
        return;
    show_rowf(table, "imported", "job %lld of the database %s%s%s",
              (long long)json_integer_value(json_object_get(from, "job")),
              json_string_value(json_object_get(from, "store")), by ? ", there of " : "",
              by ? by : "");
}

static void show_print(const json_t *json)
{
    struct libscols_table *table = table_create(0, "what,value|");
    char text[2 * FORMAT_BYTES];
    long long position = json_get_integer(json, "queue_position", 0);
    const char *run_dir = json_string_value(json_object_get(json, "run_dir"));
    struct job job;

    job_read(json, &job);
    snprintf(text, sizeof text, "%ld", job.id);
    show_add_row(table, "job", job.id ? text : "");
    show_add_row(table, "name", job.name);
    show_labels(table, json);
    struct libscols_line *line = table_line(table);
    table_set(line, 0, "state");
    table_set(line, 1, job.state);
    table_set_color(line, 1, job_state_color(job.state));
    show_add_row(table, "reason", job.reason);
    show_add_row(table, "held by", job.held_by);
    if (json_object_get(json, "grows_to"))
        show_rowf(table, "nodes", "%lld of %lld; grows when more of its hosts answer and are free",
                  (long long)json_integer_value(json_get_at(json, "/spec/cluster/nodes")),
                  json_get_integer(json, "grows_to", 0));
    if (position > 0)
        show_rowf(table, "in the queue", "%lld of %lld", position,
                  json_get_integer(json, "queue_length", 0));
    show_starts_row(table, &job);
    show_slurm_row(table, json_object_get(json, "slurm"));
    show_failure_rows(table, &job, json_object_get(json, "failure"));
    show_progress_rows(table, &job);
    if (job.id)
        show_straggler_rows(table, &job);
    show_target_row(table, json_object_get(json, "target"), job_ended(&job));
    show_published_rows(
        table, &job, json_string_value(json_object_get(json_object_get(json, "spec"), "preset")));
    if (!isnan(job.checkpoint_step) && strcmp(job.state, "succeeded") != 0)
        show_rowf(table, "checkpoint", "step %.0f", job.checkpoint_step);
    show_imported_row(table, json_object_get(json, "imported_from"));
    show_plan_rows(table, json_object_get(json, "plan"));
    show_add_row(table, "gradients",
                 json_get_text(json_object_get(json, "gradients"), "message", ""));
    show_energy_rows(table, &job);
    show_forecast_rows(table, json_object_get(json, "forecast"));
    show_date_row(table, "submitted", job.created_at);
    show_date_row(table, "started", job.started_at);
    show_date_row(table, "finished", job.finished_at);
    show_add_row(table, "run directory", run_dir ? run_dir : "");
    if (!isnan(job.disk_bytes))
        show_add_row(table, "on disk", format_size(text, sizeof text, job.disk_bytes));
    table_finish(table);
}

/* clang-format off */
const struct cmd cmd_show_entry = {
    .name = "show", .synopsis = "ID", .help = "show a job", .example = "trainctl show latest",
    .run = cmd_show_of_job, .document = "", .print = show_print, .completion = "job", .operands = {1, 1},
};
/* clang-format on */
