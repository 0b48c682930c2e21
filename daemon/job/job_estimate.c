#include "daemon/job/job_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/run/attempt.h"
#include "common/job/job_document.h"
#include "common/log.h"
#include "common/json.h"
#include "common/number.h"
#include "common/xalloc.h"
#include "common/plan/plan.h"
#include "common/run/speed.h"
#include "daemon/job/resume_point.h"
#include "daemon/node/node.h"
#include "daemon/store/metric.h"
#include "daemon/store/speed.h"

#define STEPS_LEFT_OUT 2 /* first steps to ignore: page faults and BLAS's buffers distort them */
#define STEPS_MIN      3
#define STEPS_MAX      1024

int job_estimate_speed(struct store *s, const struct job_spec *spec, int64_t threads,
                       const char *by, struct plan_speed *speed, struct error *e)
{
    struct plan_sample samples[4 * PLAN_SAMPLES_MAX];
    char key[SPEED_KEY_BYTES], cpu[SPEED_CPU_BYTES];
    size_t count;
    int status = store_speed_find(s, speed_key(spec, threads, key), speed_cpu(cpu), by, samples,
                                  sizeof samples / sizeof samples[0], &count, e);

    if (!status)
        *speed =
            plan_speed_of(samples, count, spec->cluster.workers_per_node, spec->batch_per_worker);
    if (!status && speed->samples)
        status = node_slowest(s, spec, clock_now(), &speed->slowest_times, speed->slowest, e);
    return status;
}

enum column { STEP, COMM, OPTIM, RATE, COLUMNS };
static const char *const columns[COLUMNS] = {"step_ms", "comm_ms", "optim_ms", "images_per_sec"};

struct steps {
    size_t index[COLUMNS]; /* column of event_metric_at */
    double values[COLUMNS][STEPS_MAX];
    size_t count;
    double t; /* time of the newest row */
};

static void estimate_add_part(void *context, const struct store_metric_part *part)
{
    struct steps *s = context;

    s->t = part->t;
    if (s->count == STEPS_MAX)
        return;
    for (int i = 0; i < COLUMNS; i++)
        s->values[i][s->count] = part->of[s->index[i]].sum;
    s->count++;
}

static struct steps *estimate_new_steps(void)
{
    struct steps *s = xcalloc(1, sizeof *s);

    for (size_t m = 0; event_metric_at(m); m++)
        for (int i = 0; i < COLUMNS; i++)
            if (strcmp(event_metric_at(m)->name, columns[i]) == 0)
                s->index[i] = m;
    return s;
}

/* Stores the speed measured over the steps with the largest images. */
static int estimate_store_speed_of(struct store *s, const struct store_job *job,
                                   const struct job_spec *spec, int64_t threads,
                                   struct steps *steps, double now, struct error *e)
{
    char key[SPEED_KEY_BYTES], cpu[SPEED_CPU_BYTES];
    const json_t *sizes = json_object_get(store_job_plan(job), "image_sizes");
    const json_t *last = json_array_get(sizes, json_array_size(sizes) - 1);
    int64_t first = json_integer_value(json_object_get(last, "step")) + STEPS_LEFT_OUT + 1;
    int status = store_metric_each(s, job->id, first, STEPS_MAX, estimate_add_part, steps, e);

    if (status || steps->count < STEPS_MIN || spec->cluster.nodes != 1)
        return status;
    double exchange = number_median(steps->values[COMM], steps->count) / 1e3;
    double update = number_median(steps->values[OPTIM], steps->count) / 1e3;
    double images = (double)spec->batch_per_worker * (double)spec->accumulate_steps;
    struct store_speed speed = {
        .key = speed_key(spec, threads, key),
        .cpu = speed_cpu(cpu),
        .t = now,
        .sample = {.workers = spec->cluster.workers_per_node,
                   .batch = spec->batch_per_worker,
                   .exchange_seconds = exchange,
                   .update_seconds = update,
                   .image_seconds = (number_median(steps->values[STEP], steps->count) / 1e3 -
                                     exchange - update) /
                                    images},
    };
    return speed_sample_is_sound(&speed.sample) ? store_speed_add(s, &speed, NULL, e) : 0;
}

static json_t *estimate_judge(const struct plan_band *band, double actual)
{
    json_t *out = plan_band_to_json(true, band);

    json_object_set_new(out, "actual", json_number(actual));
    json_object_set_new(out, "inside", json_boolean(actual >= band->low && actual <= band->high));
    if (actual > 0)
        json_object_set_new(out, "error", json_number(band->value / actual - 1));
    return out;
}

static json_t *estimate_band_or_null(const struct forecast_end *end)
{
    struct plan_band band = {end->likely, end->soonest, end->latest};

    return plan_band_to_json(isfinite(band.value) && isfinite(band.high), &band);
}

/* Returns the mean number of images per step over the run, or global_batch. */
static double estimate_mean_batch(const json_t *plan)
{
    const json_t *phases = json_object_get(plan, "phases"), *phase;
    double images = 0, steps = 0;
    size_t i;

    json_array_foreach (phases, i, phase) {
        images += json_get_number(phase, "steps", 0) * json_get_number(phase, "global_batch", 0);
        steps += json_get_number(phase, "steps", 0);
    }
    return images > 0 && steps > 0 ? images / steps : json_get_number(plan, "global_batch", 1);
}

static struct forecast_pace estimate_pace_of(const struct job_spec *spec, const json_t *plan)
{
    struct forecast_pace pace = {.evaluation = plan_evaluation_passes(spec)};
    const json_t *parts = json_object_get(plan, "phases"), *part;
    double batch = estimate_mean_batch(plan);
    size_t i;

    parts = parts ? parts : json_object_get(plan, "image_sizes");
    json_array_foreach (parts, i, part) {
        int64_t size = json_get_integer(part, "size", json_get_integer(part, "image_size", 0));
        if (size < 1 || pace.count == sizeof pace.parts / sizeof pace.parts[0])
            break;
        pace.parts[pace.count++] = (struct forecast_part){
            json_get_integer(part, "step", 0), json_get_number(part, "global_batch", batch) / batch,
            plan_size_cost(spec, size)};
    }
    return pace;
}

/* Treats all steps alike if the job's document cannot be parsed. */
static struct forecast_pace estimate_pace(const struct store_job *job)
{
    struct error ignored;
    const struct job_spec *spec = job->parsed ? store_job_document(job, &ignored) : NULL;

    return spec ? estimate_pace_of(spec, store_job_plan(job)) : (struct forecast_pace){0};
}

static struct forecast_eval *estimate_read_evals(struct store *s, int64_t id, size_t *count)
{
    json_t *evals = NULL;
    const json_t *one;
    struct error ignored;
    size_t i;

    *count = 0;
    if (store_eval_list(s, id, &evals, &ignored))
        return NULL;
    struct forecast_eval *list = xcalloc(json_array_size(evals) + 1, sizeof *list);
    json_array_foreach (evals, i, one)
        list[(*count)++] = (struct forecast_eval){json_get_number(one, "step", NAN),
                                                  json_get_number(one, "top1", NAN),
                                                  json_get_number(one, "t", NAN)};
    json_decref(evals);
    return list;
}

/* Returns the step of the first evaluation at or after `step`. */
static double estimate_evaluated_at(const struct store_job *job, double step)
{
    double interval = job->evaluations > 0 ? (double)job->train_steps / (double)job->evaluations
                                           : (double)job->train_steps;

    return interval * ceil(step / interval - 1e-9);
}

static struct forecast_end estimate_target_end(const struct store_job *job,
                                               const struct forecast_pace *pace,
                                               const struct plan_band *step)
{
    return (struct forecast_end){
        forecast_until(job, pace, estimate_evaluated_at(job, step->low)).soonest,
        forecast_until(job, pace, estimate_evaluated_at(job, step->value)).likely,
        forecast_until(job, pace, estimate_evaluated_at(job, step->high)).latest,
    };
}

static double estimate_spec_target(const struct store_job *job)
{
    return json_get_number(json_object_get(store_job_spec(job), "eval"), "target_top1", NAN);
}

json_t *job_estimate_target(struct store *s, const struct store_job *job)
{
    double target = estimate_spec_target(job);
    struct plan_band step;
    size_t count;

    if (!(target > 0))
        return NULL;
    struct forecast_eval *evals = estimate_read_evals(s, job->id, &count);
    const struct forecast_eval *met = forecast_target_met(evals, count, target);
    bool known = !met && forecast_target_step(evals, count, target, &step);
    bool within = known && step.value <= (double)job->train_steps;
    json_t *out = json_pack("{s:o, s:o, s:o}", "top1", json_number(target), "met_step",
                            json_integer_or_null(met, met ? (json_int_t)met->step : 0), "step",
                            plan_band_to_json(known, known ? &step : NULL));
    json_t *left = json_null();
    if (within && job->finished_at <= 0) {
        struct forecast_pace pace = estimate_pace(job);
        struct forecast_end end = estimate_target_end(job, &pace, &step);
        left = estimate_band_or_null(&end);
    }
    json_object_set_new(out, "seconds", left);
    json_object_set_new(out, "within_run", known ? json_boolean(within) : json_null());
    free(evals);
    return out;
}

/* Adds the error of the forecast made when `share` of the run was done. */
static void estimate_add_judged(json_t *list, const struct forecast_end *said, double actual,
                                double share)
{
    struct plan_band band = {said->likely, said->soonest, said->latest};

    if (!isfinite(band.value) || !isfinite(band.high))
        return;
    json_t *judged = estimate_judge(&band, actual);
    json_object_set_new(judged, "share", json_number(share));
    json_array_append_new(list, judged);
}

struct judged_run {
    const struct store_job *job;
    struct forecast_pace pace;
    double end; /* Unix time */
    double target;
    struct forecast_eval *evals;
    size_t eval_count;
};

/* Judges the forecasts made when `share` of the run was done: of its end, and of its target if that
 * was met later. */
static void estimate_judge_at(struct store *s, const struct judged_run *run, double share,
                              json_t *left, json_t *target)
{
    struct steps *row = estimate_new_steps();
    struct store_job then = *run->job;
    struct error ignored;

    then.step = (int64_t)ceil(share * (double)run->job->step);
    then.state = JOB_RUNNING;
    if (store_metric_each(s, then.id, then.step, 1, estimate_add_part, row, &ignored) == 0 &&
        row->count) {
        const struct forecast_eval *met =
            forecast_target_met(run->evals, run->eval_count, run->target);
        struct plan_band step;
        size_t count = 0;
        then.images_per_sec = row->values[RATE][0];
        struct forecast_end said = forecast_running(&then, &run->pace, 0);
        estimate_add_judged(left, &said, run->end - row->t, share);
        while (count < run->eval_count && run->evals[count].t <= row->t)
            count++;
        if (met && met->t > row->t && forecast_target_step(run->evals, count, run->target, &step)) {
            said = estimate_target_end(&then, &run->pace, &step);
            estimate_add_judged(target, &said, met->t - row->t, share);
        }
    }
    free(row);
}

static json_t *estimate_forecast_judged(struct store *s, const struct store_job *job, double now)
{
    json_t *left = json_array(), *target = json_array(), *out = json_object();
    struct plan_band predicted = {job->predicted_seconds, job->predicted_low_seconds,
                                  job->predicted_high_seconds};
    struct judged_run run = {
        .job = job, .pace = estimate_pace(job), .end = now, .target = estimate_spec_target(job)};

    if (run.target > 0)
        run.evals = estimate_read_evals(s, job->id, &run.eval_count);
    json_object_set_new(out, "ttt_seconds",
                        predicted.value > 0 && job->ttt_seconds > 0
                            ? estimate_judge(&predicted, job->ttt_seconds)
                            : json_null());
    for (int quarter = 1; quarter <= 3; quarter++)
        estimate_judge_at(s, &run, quarter * 0.25, left, target);
    json_object_set_new(out, "time_left", left);
    json_object_set_new(out, "target", target);
    free(run.evals);
    return out;
}

static int estimate_job(struct store *s, const struct store_job *job, const struct job_spec *spec,
                        int64_t threads, double now, struct error *e)
{
    struct steps *steps = estimate_new_steps();
    int status = estimate_store_speed_of(s, job, spec, threads, steps, now, e);

    free(steps);
    /* After a restart the times span several attempts; of an early end there was no forecast. */
    if (status || job->attempt != 1 || job->step < job->train_steps)
        return status;
    json_t *forecast = estimate_forecast_judged(s, job, now);
    char *text = must_alloc(json_dumps(forecast, JSON_COMPACT | JSON_REAL_PRECISION(9)));
    json_decref(forecast);
    status = store_job_set_forecast(s, job->id, text, e);
    free(text);
    return status;
}

void job_estimate_finished(struct store *s, int64_t id, int64_t threads, double now)
{
    struct store_job job;
    struct error e;
    int status = store_job_get(s, id, &job, &e);

    if (!status) {
        const struct job_spec *spec = store_job_document(&job, &e);
        if (!spec)
            status = -(int)e.code;
        else if (spec->mode == JOB_MODE_TRAIN && job.train_steps > 0)
            status = estimate_job(s, &job, spec, threads, now, &e);
    }
    if (status)
        log_warning("job %lld: cannot store its measured speed: %s", (long long)id, e.text);
    store_job_clear(&job);
}

struct forecast_end job_estimate_end(struct store *s, const struct store_job *job, double elapsed)
{
    struct store_job at = *job, whole; /* `at` borrows its strings */
    struct forecast_pace pace = {0};
    struct error e;

    /* The step it resumes from is known only with its first event. */
    if (job->state == JOB_STARTING && job->attempt > 1)
        at.step = job->resumes || job->restarts ? resume_point_newest_step(job->run_dir, &e) : 0;
    if (at.step < 0)
        at.step = 0;
    if (job->spec) {
        pace = estimate_pace(job);
    } else if (store_job_get(s, job->id, &whole, &e) == 0) { /* lists omit the documents */
        pace = estimate_pace(&whole);
        store_job_clear(&whole);
    }
    return forecast_running(&at, &pace, elapsed);
}

json_t *job_estimate_time_left(struct job_manager *m, const struct store_job *job, double now)
{
    bool between = job->state == JOB_QUEUED && forecast_chains(job) && job->step > 0;
    if (job->state != JOB_STARTING && job->state != JOB_RUNNING && job->state != JOB_EVALUATING &&
        !between)
        return json_null();
    double began = job->attempt_started_at > 0 ? job->attempt_started_at : job->started_at;
    struct forecast_end end;
    if (!job_queue_end(m, job->id, &end))
        end = job_estimate_end(job_manager_store(m), job, began > 0 ? now - began : 0);
    return estimate_band_or_null(&end);
}

const char *job_energy_source_name(enum job_energy_source source)
{
    static const char *const names[JOB_ENERGY_SOURCES] = {[JOB_ENERGY_NONE] = "none",
                                                          [JOB_ENERGY_ESTIMATED] = "estimated",
                                                          [JOB_ENERGY_MEASURED] = "measured"};
    return names[source];
}

struct job_cost job_cost_of(const struct store_job *job, const struct plan_prices *prices,
                            double now)
{
    struct job_cost cost = {.source = JOB_ENERGY_NONE, .joules = NAN};
    double seconds = job->node_seconds; /* NAN: it never ran, or an older version ran it */
    double images = job->train_steps > 0 ? (double)job->step * (double)job->global_batch
                                         : (double)job->evaluated_images;

    if (job->active_since > 0)
        seconds =
            (isnan(seconds) ? 0 : seconds) + fmax(0, now - job->active_since) * (double)job->nodes;
    cost.node_hours = seconds * job->node_share / 3600;
    double estimated = plan_prices_kwh(prices, cost.node_hours) * JOULES_PER_KWH;
    if (job->measured_joules > 0 && job->joules_whole) {
        cost.source = JOB_ENERGY_MEASURED;
        cost.joules = job->measured_joules * job->node_share;
    } else if (estimated > 0) {
        cost.source = JOB_ENERGY_ESTIMATED;
        cost.joules = estimated;
    }
    cost.kwh = cost.joules / JOULES_PER_KWH;
    cost.joules_per_image = cost.joules / (images > 0 ? images : NAN);
    cost.cost = plan_prices_cost(prices, cost.kwh, cost.node_hours);
    return cost;
}
