#include "daemon/job/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/run/event.h"
#include "common/job/job_document.h"
#include "common/log.h"
#include "common/median.h"
#include "common/plan/plan.h"
#include "common/run/speed.h"
#include "daemon/job/queue/forecast.h"
#include "daemon/job/document.h"
#include "daemon/job/job.h"
#include "daemon/job/queue/size.h"
#include "daemon/node/node.h"

#define STEPS_LEFT_OUT 2 /* page faults, BLAS's buffers */
#define STEPS_MIN      3
#define STEPS_MAX      1024

int measure_speed(struct store *s, const struct job_spec *spec, int64_t slots,
                  struct plan_speed *speed, struct error *e)
{
    struct plan_sample samples[4 * PLAN_SAMPLES_MAX];
    char key[SPEED_KEY_BYTES], cpu[SPEED_CPU_BYTES];
    size_t count;
    int status = store_speed_find(s, speed_key(spec, job_threads(spec, slots), key), speed_cpu(cpu),
                                  samples, sizeof samples / sizeof samples[0], &count, e);

    if (!status)
        *speed =
            plan_speed_of(samples, count, spec->cluster.workers_per_node, spec->batch_per_worker);
    if (!status && speed->samples)
        status = node_slowest(s, spec, clock_now(), &speed->slowest_times, speed->slowest, e);
    return status;
}

/* ---- the speed of a run */

enum column { STEP, COMM, OPTIM, RATE, COLUMNS };
static const char *const names[COLUMNS] = {"step_ms", "comm_ms", "optim_ms", "images_per_sec"};

struct steps {
    size_t index[COLUMNS]; /* of event_metric_at */
    double values[COLUMNS][STEPS_MAX];
    size_t count;
    double t; /* of the newest row */
};

static void measure_add_part(void *context, const struct store_metric_part *part)
{
    struct steps *s = context;

    s->t = part->t;
    if (s->count == STEPS_MAX)
        return;
    for (int i = 0; i < COLUMNS; i++)
        s->values[i][s->count] = part->of[s->index[i]].sum;
    s->count++;
}

static void find_columns(struct steps *s)
{
    for (size_t m = 0; event_metric_at(m); m++)
        for (int i = 0; i < COLUMNS; i++)
            if (strcmp(event_metric_at(m)->name, names[i]) == 0)
                s->index[i] = m;
}

/* The first step of the largest images, which is what a speed is kept for. */
static int64_t measure_first_step(const struct store_job *job)
{
    json_t *plan = job->plan ? json_loads(job->plan, 0, NULL) : NULL;
    const json_t *sizes = json_object_get(plan, "image_sizes");
    const json_t *last = json_array_get(sizes, json_array_size(sizes) - 1);
    int64_t step = json_integer_value(json_object_get(last, "step"));

    json_decref(plan);
    return step + STEPS_LEFT_OUT + 1;
}

static int store_speed_of(struct store *s, const struct store_job *job, const struct job_spec *spec,
                          int64_t slots, struct steps *steps, double now, struct error *e)
{
    char key[SPEED_KEY_BYTES], cpu[SPEED_CPU_BYTES];
    int status = store_metric_each(s, job->id, measure_first_step(job), STEPS_MAX, measure_add_part,
                                   steps, e);

    if (status || steps->count < STEPS_MIN || spec->cluster.nodes != 1)
        return status;
    double exchange = median(steps->values[COMM], steps->count) / 1e3;
    double update = median(steps->values[OPTIM], steps->count) / 1e3;
    double images = (double)spec->batch_per_worker * (double)spec->accumulate_steps;
    struct store_speed speed = {
        .key = speed_key(spec, job_threads(spec, slots), key),
        .cpu = speed_cpu(cpu),
        .t = now,
        .sample = {.workers = spec->cluster.workers_per_node,
                   .batch = spec->batch_per_worker,
                   .exchange_seconds = exchange,
                   .update_seconds = update,
                   .image_seconds =
                       (median(steps->values[STEP], steps->count) / 1e3 - exchange - update) /
                       images},
    };
    return speed.sample.image_seconds > 0 ? store_speed_add(s, &speed, e) : 0;
}

/* ---- how good the bands were */

static json_t *measure_judge(const struct plan_band *band, double actual)
{
    json_t *out = plan_band_to_json(true, band);

    json_object_set_new(out, "actual", json_real(actual));
    json_object_set_new(out, "inside", json_boolean(actual >= band->low && actual <= band->high));
    if (actual > 0)
        json_object_set_new(out, "error", json_real(band->value / actual - 1));
    return out;
}

static json_t *band_or_null(const struct forecast_end *end)
{
    struct plan_band band = {end->likely, end->soonest, end->latest};
    bool known = isfinite(band.value);

    if (known && !isfinite(band.high))
        known = false;
    return plan_band_to_json(known, &band);
}

/* What was said of the time left when this share of the steps was done. */
static json_t *judge_at(struct store *s, const struct store_job *job, double share, double end)
{
    static const struct steps none;
    struct steps *row = malloc(sizeof *row);
    struct store_job then = *job;
    struct error ignored;
    json_t *out = NULL;

    if (!row)
        return NULL;
    *row = none;
    find_columns(row);
    then.step = (int64_t)ceil(share * (double)job->train_steps);
    then.state = JOB_RUNNING;
    if (store_metric_each(s, job->id, then.step, 1, measure_add_part, row, &ignored) == 0 &&
        row->count) {
        then.images_per_sec = row->values[RATE][0];
        struct forecast_end said = forecast_running(&then, 0);
        struct plan_band band = {said.likely, said.soonest, said.latest};
        if (isfinite(band.high)) {
            out = measure_judge(&band, end - row->t);
            json_object_set_new(out, "share", json_real(share));
        }
    }
    free(row);
    return out;
}

static json_t *forecast_judged(struct store *s, const struct store_job *job, double now)
{
    static const double shares[] = {0.25, 0.5, 0.75};
    json_t *left = json_array(), *out = json_object();
    struct plan_band predicted = {job->predicted_seconds, job->predicted_low_seconds,
                                  job->predicted_high_seconds};

    json_object_set_new(out, "ttt_seconds",
                        predicted.value > 0 && job->ttt_seconds > 0
                            ? measure_judge(&predicted, job->ttt_seconds)
                            : json_null());
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        json_t *at = judge_at(s, job, shares[i], now);
        if (at)
            json_array_append_new(left, at);
    }
    json_object_set_new(out, "time_left", left);
    return out;
}

/* ---- the end of a job */

static int measure_job(struct store *s, const struct store_job *job, const struct job_spec *spec,
                       int64_t slots, double now, struct error *e)
{
    struct steps *steps = calloc(1, sizeof *steps);

    if (!steps)
        return error_set(e, ERR_NO_MEMORY, "no memory for its steps");
    find_columns(steps);
    int status = store_speed_of(s, job, spec, slots, steps, now, e);
    free(steps);
    if (status || job->attempt != 1) /* after a restart the times are those of several attempts */
        return status;
    json_t *forecast = forecast_judged(s, job, now);
    char *text = json_dumps(forecast, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(forecast);
    if (text)
        status = store_job_set_forecast(s, job->id, text, e);
    free(text);
    return status;
}

void measure_finished(struct store *s, int64_t id, int64_t slots, double now)
{
    struct store_job job;
    struct error e;
    int status = store_job_get(s, id, &job, &e);

    if (!status) {
        struct job_spec *spec = job_stored_spec(&job, &e);
        if (!spec)
            status = -(int)e.code;
        else if (spec->mode == JOB_MODE_TRAIN && job.train_steps > 0)
            status = measure_job(s, &job, spec, slots, now, &e);
        job_spec_destroy(spec);
    }
    if (status)
        log_warning("job %lld: what it measured was not kept: %s", (long long)id, e.text);
    store_job_clear(&job);
}

struct forecast_end measure_end(const struct store_job *job, double elapsed)
{
    struct store_job at = *job; /* borrows its texts */

    /* It will say with its first event from where it goes on. */
    if (job->state == JOB_STARTING && job->attempt > 1)
        at.step = job->resumes || job->restarts ? job_newest_checkpoint(job->run_dir) : 0;
    return forecast_running(&at, elapsed);
}

json_t *measure_time_left(const struct store_job *job, double now)
{
    bool between = job->state == JOB_QUEUED && forecast_chains(job) && job->step > 0;
    if (job->state != JOB_STARTING && job->state != JOB_RUNNING && job->state != JOB_EVALUATING &&
        !between)
        return json_null();
    double began = job->attempt_started_at > 0 ? job->attempt_started_at : job->started_at;
    struct forecast_end end = measure_end(job, began > 0 ? now - began : 0);
    return band_or_null(&end);
}
