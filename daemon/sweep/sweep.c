#include "daemon/sweep/sweep.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/dataset/job_data.h"
#include "common/document.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/log.h"
#include "common/plan/plan_build.h"
#include "common/run/attempt.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_resources.h"
#include "daemon/store/audit.h"
#include "daemon/store/metric.h"
#include "daemon/store/sweep.h"
#include "daemon/sweep/sweep_document.h"

#define SUBMITTED_A_LOOK  16 /* limit per call, because submitting blocks the job manager's loop */
#define AGAIN_SECONDS     10
#define POINT_SHOWN_BYTES 300
#define AWAY_SECONDS      30 /* a hanging Slurm blocks the loop for ten seconds each time */

/* Whether sweeps may have ended while jobs of theirs have not; assumed after a start. */
static atomic_bool some_end = true;

static struct {
    int capacity;    /* jobs that may still be submitted */
    bool slurm_away; /* Slurm did not answer */
} sweep_look;

static bool sweep_has_state(const struct store_trial *t, const char *state)
{
    return strcmp(t->state, state) == 0;
}

static struct job_spec *sweep_parse_trial(struct job_manager *m, json_t *document,
                                          const struct sweep_permit *permit, struct problems *own)
{
    struct job_spec *spec = job_data_read(document, own);
    struct error e;

    if (spec && own->count == 0 && permit)
        permit->check(spec, permit->context, own);
    if (spec && own->count == 0 && job_check_fits(m, spec, own, &e))
        problems_add(own, "/cluster", NULL, "%s", e.text);
    if (spec && own->count == 0)
        job_check_caps(m, spec, own);
    if (own->count == 0)
        return spec;
    job_spec_destroy(spec);
    return NULL;
}

/* Takes over the reference to the point. */
static void sweep_fill_trial(struct job_manager *m, const json_t *d,
                             const struct sweep_permit *permit, int64_t rung, int64_t number,
                             json_t *point, int64_t before, struct store_trial *t,
                             struct problems *own)
{
    json_t *job = sweep_job(d, point, rung, before);
    struct job_spec *spec = sweep_parse_trial(m, job, permit, own);

    *t = (struct store_trial){.rung = rung,
                              .number = number,
                              .metric = NAN,
                              .state = xstrdup("waiting"),
                              .point = must_alloc(json_to_text(point, JSON_COMPACT))};
    /* An invalid document makes its trial fail with the reason when it is submitted. */
    t->spec = json_take_text(spec ? job_spec_to_json(spec) : json_incref(job));
    job_spec_destroy(spec);
    json_decref(point);
    json_decref(job);
}

static void sweep_add_problems(struct problems *problems, const struct problems *own,
                               const struct store_trial *t)
{
    size_t bytes = strnlen(t->point, POINT_SHOWN_BYTES);

    bytes -= text_incomplete(t->point, bytes);
    for (size_t i = 0; i < own->count && problems->count < DOCUMENT_PROBLEMS_MAX; i++) {
        const struct problem *p = &own->items[i];
        char *pointer = xasprintf("/base%s", p->pointer);
        problems_add(problems, pointer, p->suggestion, "%s (point %lld: %.*s)", p->message,
                     (long long)t->number, (int)bytes, t->point);
        free(pointer);
    }
}

static void sweep_fill_trials(struct job_manager *m, const json_t *d,
                              const struct sweep_permit *permit, struct store_sweep *sweep,
                              struct problems *problems)
{
    json_t *point;
    size_t bytes = 0;

    for (int64_t i = 0; (point = sweep_point(d, i)); i++) {
        struct problems own = {0};
        if (problems->count >= DOCUMENT_PROBLEMS_MAX) {
            json_decref(point);
            problems_add(problems, "/parameters", NULL,
                         "the points from %lld on were not checked, because earlier ones have too "
                         "many errors",
                         (long long)i);
            return;
        }
        struct store_trial *t = &array_add(sweep->trials, sweep->count, sweep->capacity);
        sweep_fill_trial(m, d, permit, 0, i, point, 0, t, &own);
        sweep_add_problems(problems, &own, t);
        problems_clear(&own);
        bytes += strlen(t->spec);
        if (bytes > SWEEP_TEXT_MAX) {
            problems_add(problems, "/parameters", NULL,
                         "the documents of the first %zu points exceed %zu MiB: use fewer points "
                         "or a shorter base",
                         sweep->count, SWEEP_TEXT_MAX >> 20);
            return;
        }
    }
}

/* Checking one point is enough, because no parameter is the budget's key. */
static void sweep_check_rungs(struct job_manager *m, const json_t *d,
                              const struct store_sweep *sweep, struct problems *problems)
{
    struct plan_inputs inputs = {.train_images = sweep->train_images,
                                 .eval_images = sweep->eval_images};
    const char *key = json_string_value(json_object_get(json_object_get(d, "budget"), "key"));
    char text[PROBLEM_KEY_BYTES];

    for (int64_t rung = 0; problems->count == 0 && (rung == 0 || sweep_budget(d, rung) > 0);
         rung++) {
        struct problems own = {0};
        json_t *point = sweep_point(d, 0), *job = sweep_job(d, point, rung, 0);
        struct job_spec *spec = sweep_parse_trial(m, job, NULL, &own);
        struct job_cores cores = {0};
        if (spec && job_share_cores(m, spec, sweep->submitted_by, &cores, &own) == 0) {
            job_cores_to_plan_inputs(&cores, &inputs);
            plan_inputs_share_out(spec, &inputs);
            plan_destroy(plan_make(spec, &inputs, &own));
        }
        if (spec && key && strcmp(key, "/epochs") == 0 && spec->has_steps)
            problems_add(problems, "/budget/key", "/steps",
                         "steps is set and takes precedence over epochs");
        for (size_t i = 0; i < own.count; i++)
            problems_add(problems, key ? "/budget" : "/base", NULL, "rung %lld, %s %.10g: %s: %s",
                         (long long)rung, key ? key + 1 : "", key ? sweep_budget(d, rung) : 0.0,
                         problem_key(own.items[i].pointer, text), own.items[i].message);
        job_spec_destroy(spec);
        json_decref(job);
        json_decref(point);
        problems_clear(&own);
    }
}

static void sweep_check_data(struct job_manager *m, const json_t *d, struct store_sweep *sweep,
                             struct problems *problems)
{
    json_t *document = json_loads(sweep->trials[0].spec, 0, NULL);
    struct problems own = {0}, ignored = {0};
    struct job_spec *spec = job_spec_parse(document, NULL, NULL, &ignored);
    struct plan_inputs inputs = {0};
    const char *pointer, *metric = json_get_text(d, "metric", "");
    struct job_cores cores;
    struct error e;
    int status = spec ? plan_inputs_count(spec, &inputs, &pointer, &e) : 0;

    if (status)
        problems_add(&own, pointer, NULL, "%s", e.text);
    else if (spec)
        plan_check_data(spec, &inputs.data, &own);
    if (spec && !spec->data.eval && (strcmp(metric, "top1") == 0 || strcmp(metric, "top5") == 0))
        problems_add(problems, "/metric", "loss",
                     "%s is measured on data.eval, which the base does not set: add it, or "
                     "compare by loss, images_per_sec or ttt_seconds",
                     metric);
    for (size_t i = 0; i < own.count; i++) {
        char *at = xasprintf("/base%s", own.items[i].pointer);
        problems_add(problems, at, NULL, "%s", own.items[i].message);
        free(at);
    }
    if (spec && !status) /* reported now, so that no points fail later */
        job_share_cores(m, spec, sweep->submitted_by, &cores, problems);
    sweep->train_images = inputs.train_images;
    sweep->eval_images = inputs.eval_images;
    job_spec_destroy(spec);
    json_decref(document);
    problems_clear(&own);
    problems_clear(&ignored);
}

void sweep_make(struct job_manager *m, const json_t *d, const struct sweep_new *new,
                struct store_sweep *sweep, struct problems *problems)
{
    sweep->submitted_by = xstrdup_or_null(new->key.by);
    sweep_fill_trials(m, d, &new->permit, sweep, problems);
    if (problems->count == 0)
        sweep_check_data(m, d, sweep, problems);
    if (problems->count == 0)
        sweep_check_rungs(m, d, sweep, problems);
    sweep->name = xstrdup_or_null(json_get_text(d, "name", NULL));
    sweep->document = json_incref((json_t *)d);
}

static void sweep_audit(struct job_manager *m, enum store_audit_kind what, int64_t id,
                        const char *by, const char *done)
{
    struct store_audit line = {what, id, by, NULL, clock_now()};

    log_info("sweep %lld: %s by %s", (long long)id, done, job_requester_name(by));
    store_audit_add(job_manager_store(m), &line);
}

int sweep_create(struct job_manager *m, const struct sweep_new *new, struct problems *problems,
                 int64_t *id, bool *existed, struct error *e)
{
    struct store_sweep sweep = {.created_at = clock_now()};
    int status = store_sweep_find_key(job_manager_store(m), &new->key, id, e);

    *existed = *id > 0;
    if (status || *existed)
        return status;
    json_t *d = sweep_document_check(new->document, problems);
    if (!d)
        return 0;
    sweep_make(m, d, new, &sweep, problems);
    if (problems->count == 0)
        status = store_sweep_insert(job_manager_store(m), &sweep, &new->key, existed, e);
    if (!status && problems->count == 0) {
        *id = sweep.id;
        if (!*existed)
            sweep_audit(m, STORE_AUDIT_SWEEP_SUBMIT, *id, new->key.by, "submitted");
        job_manager_wake(m);
    }
    store_sweep_clear(&sweep);
    json_decref(d);
    return status;
}

static double sweep_metric(const struct store_job *job, const char *name)
{
    return strcmp(name, "top1") == 0             ? job->top1
           : strcmp(name, "top5") == 0           ? job->top5
           : strcmp(name, "loss") == 0           ? job->loss
           : strcmp(name, "images_per_sec") == 0 ? job->images_per_sec
                                                 : job->ttt_seconds;
}

static void sweep_set_state(struct store_trial *t, const char *state)
{
    free(t->state);
    t->state = xstrdup(state);
}

static int sweep_take_result(struct job_manager *m, const struct store_sweep *sweep,
                             struct store_trial *t, struct error *e)
{
    struct store_job job;
    int status = store_job_get(job_manager_store(m), t->job_id, &job, e);

    if (status == -(int)ERR_NOT_FOUND) { /* the user has removed it */
        sweep_set_state(t, "cancelled");
        return store_sweep_set_trial(job_manager_store(m), sweep->id, t, e);
    }
    if (status)
        return status;
    if (job.state == JOB_SUCCEEDED || job.state == JOB_FAILED || job.state == JOB_CANCELLED) {
        bool stopped = job.state == JOB_CANCELLED && t->reason;
        sweep_set_state(t, stopped ? "stopped" : job_state_name(job.state));
        if (job.state == JOB_SUCCEEDED)
            t->metric = sweep_metric(&job, json_get_text(sweep->document, "metric", NULL));
        status = store_sweep_set_trial(job_manager_store(m), sweep->id, t, e);
    }
    store_job_clear(&job);
    return status;
}

/* Sets *left if some jobs have not ended. */
static int sweep_cancel_trials(struct job_manager *m, int64_t id, const char *by, bool *left,
                               struct error *e)
{
    struct store_sweep sweep;
    int status = store_sweep_get(job_manager_store(m), id, &sweep, e);

    for (size_t i = 0; !status && i < sweep.count; i++) {
        struct store_trial *t = &sweep.trials[i];
        struct store_job job;
        if (!sweep_has_state(t, "submitted"))
            continue;
        status = store_job_get(job_manager_store(m), t->job_id, &job, e);
        bool asked = status || store_job_cancel_asked(&job);
        if (!status)
            store_job_clear(&job);
        if (status && status != -(int)ERR_NOT_FOUND)
            break;
        /* It may have just ended. */
        if (!asked && job_cancel(m, t->job_id, by, e) && e->code != ERR_CONFLICT &&
            e->code != ERR_NOT_FOUND)
            log_warning("sweep %lld, job %lld: %s", (long long)id, (long long)t->job_id, e->text);
        status = sweep_take_result(m, &sweep, t, e);
        *left = *left || sweep_has_state(t, "submitted");
    }
    store_sweep_clear(&sweep);
    return status;
}

int sweep_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    bool left = false;
    struct error later;
    int status = store_sweep_end(job_manager_store(m), id, "cancelled", clock_now(), e);

    if (status)
        return status;
    sweep_audit(m, STORE_AUDIT_SWEEP_CANCEL, id, by, "cancelled");
    if (sweep_cancel_trials(m, id, by, &left, &later) || left)
        atomic_store(&some_end, true);
    job_manager_wake(m);
    return 0;
}

/* Cancels jobs that outlived their sweep because they end slowly or the daemon crashed. Returns
 * false if something failed. */
static bool sweeps_cancel_rest(struct job_manager *m)
{
    int64_t ids[SWEEPS_RUNNING_MAX];
    struct error e;
    size_t count = 0;
    bool fine = store_sweep_ending(job_manager_store(m), ids, SWEEPS_RUNNING_MAX, &count, &e) == 0;
    bool left = !fine || count == SWEEPS_RUNNING_MAX;

    if (!fine)
        log_warning("cancelled sweeps: %s", e.text);
    for (size_t i = 0; i < count; i++) {
        char by[32];
        snprintf(by, sizeof by, "sweep %lld", (long long)ids[i]);
        if (sweep_cancel_trials(m, ids[i], by, &left, &e)) {
            log_warning("sweep %lld: %s", (long long)ids[i], e.text);
            left = true;
            fine = false;
        }
    }
    if (left)
        atomic_store(&some_end, true);
    return fine;
}

/* A failure of this machine or of Slurm rather than of the job, after which to retry. */
static bool sweep_is_transient(const struct error *e)
{
    return e->code == ERR_IO || e->code == ERR_NO_SPACE || e->code == ERR_NO_MEMORY ||
           e->code == ERR_INTERNAL || e->code == ERR_TOO_MANY || e->code == ERR_UNREACHABLE ||
           e->code == ERR_BUSY;
}

struct plan *sweep_plan_trial(struct job_manager *m, const struct store_sweep *sweep,
                              struct job_spec *spec, struct plan_inputs *inputs,
                              struct problems *problems, struct error *e)
{
    struct job_cores cores = {0};
    int status = job_share_cores(m, spec, sweep->submitted_by, &cores, problems);

    inputs->train_images = sweep->train_images;
    inputs->eval_images = sweep->eval_images;
    if (status) {
        error_set(e, (enum error_code) - status, "%s", problems->items[0].message);
        return NULL;
    }
    job_cores_to_plan_inputs(&cores, inputs);
    if (inputs->speed.samples == 0 &&
        job_estimate_speed(job_manager_store(m), spec,
                           job_threads(spec, job_manager_total_slots(m)), sweep->submitted_by,
                           &inputs->speed, e))
        return NULL;
    plan_inputs_share_out(spec, inputs);
    struct plan *plan = plan_make(spec, inputs, problems);
    inputs->workers = NULL; /* derived from the cores */
    inputs->cores_source = NULL;
    if (!plan)
        error_set(e, ERR_INVALID, "%s",
                  problems->count ? problems->items[0].message : "it cannot be planned");
    return plan;
}

static int sweep_submit_trial(struct job_manager *m, const struct store_sweep *sweep,
                              struct store_trial *t, struct error *e)
{
    struct problems problems = {0};
    struct plan_inputs inputs = {0};
    json_t *document = json_loads(t->spec, 0, NULL);
    struct job_spec *spec = job_spec_parse(document, preset_lookup, NULL, &problems);
    struct plan *plan = NULL;
    char key[64], who[32];
    int status;

    if (!spec)
        status = error_set(e, ERR_INVALID, "%s",
                           problems.count ? problems.items[0].message : "it cannot be planned");
    else if (sweep_look.slurm_away && spec->cluster.launcher == JOB_LAUNCHER_SLURM)
        status =
            error_set(e, ERR_UNREACHABLE, "Slurm does not answer"); /* queried once per round */
    else
        status =
            (plan = sweep_plan_trial(m, sweep, spec, &inputs, &problems, e)) ? 0 : -(int)e->code;
    if (!status) {
        snprintf(key, sizeof key, STORE_TRIAL_KEY, (long long)sweep->id, (long long)t->rung,
                 (long long)t->number);
        snprintf(who, sizeof who, "sweep %lld", (long long)sweep->id);
        struct job_submission submission = {spec, plan, key, "sweep", who};
        status = job_submit(m, &submission, &problems, &t->job_id, NULL, e);
    }
    sweep_look.capacity--;
    sweep_look.slurm_away = sweep_look.slurm_away || status == -(int)ERR_UNREACHABLE;
    if (!status) {
        sweep_set_state(t, "submitted"); /* stored together with its job */
    } else if (e->code != ERR_CONFLICT && !sweep_is_transient(e)) {
        log_warning("sweep %lld, point %lld: %s", (long long)sweep->id, (long long)t->number,
                    e->text);
        free(t->reason);
        t->reason = text_escape_copy(e->text, "");
        sweep_set_state(t, "failed");
        status = store_sweep_set_trial(job_manager_store(m), sweep->id, t, e);
    }
    plan_destroy(plan);
    job_spec_destroy(spec);
    json_decref(document);
    problems_clear(&problems);
    return status;
}

static int sweep_better_by(const void *a, const void *b, void *context)
{
    const struct store_trial *x = *(struct store_trial *const *)a;
    const struct store_trial *y = *(struct store_trial *const *)b;
    const bool *maximises = context;

    if (x->rung != y->rung)
        return x->rung > y->rung ? -1 : 1;
    if (isnan(x->metric) != isnan(y->metric))
        return isnan(x->metric) ? 1 : -1;
    if (!isnan(x->metric) && x->metric != y->metric)
        return (x->metric > y->metric) == *maximises ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Sorts by result, best first. The caller frees the list, which is NULL-terminated. */
static struct store_trial **sweep_rank(const struct store_sweep *sweep)
{
    struct store_trial **order = xcalloc(sweep->count + 1, sizeof(*order));
    bool maximises = strcmp(json_get_text(sweep->document, "goal", ""), "max") == 0;

    for (size_t i = 0; i < sweep->count; i++)
        order[i] = &sweep->trials[i];
    qsort_r(order, sweep->count, sizeof(*order), sweep_better_by, &maximises);
    return order;
}

/* Returns the newest rung's first trial if all of that rung failed or were rejected, or NULL. */
static const struct store_trial *sweep_all_failed(const struct store_sweep *sweep)
{
    const struct store_trial *first = NULL;
    int64_t rung = 0;

    for (size_t i = 0; i < sweep->count; i++)
        rung = sweep->trials[i].rung > rung ? sweep->trials[i].rung : rung;
    for (size_t i = 0; i < sweep->count; i++) {
        if (sweep->trials[i].rung != rung)
            continue;
        if (!sweep_has_state(&sweep->trials[i], "failed"))
            return NULL;
        first = first ? first : &sweep->trials[i];
    }
    return first;
}

/* Sets *ended if there is no next rung. */
static int sweep_promote(struct job_manager *m, const struct store_sweep *sweep, bool *ended,
                         struct error *e)
{
    const json_t *d = sweep->document;
    struct store_trial **order = sweep_rank(sweep);
    struct problems problems = {0};
    int64_t rung = order[0] ? order[0]->rung : 0;
    double eta = json_get_number(json_object_get(d, "budget"), "eta", 0);
    struct store_sweep next = {0};
    size_t in_rung = 0, measured = 0;
    int status = 0;

    for (size_t i = 0; i < sweep->count; i++) {
        in_rung += order[i]->rung == rung;
        measured += order[i]->rung == rung && !isnan(order[i]->metric);
    }
    *ended = sweep_budget(d, rung + 1) <= 0 || measured == 0;
    size_t max = *ended ? 0 : (size_t)ceil((double)in_rung / eta);
    for (size_t i = 0; i < measured && i < max; i++)
        sweep_fill_trial(m, d, NULL, rung + 1, order[i]->number,
                         json_loads(order[i]->point, 0, NULL), order[i]->job_id,
                         &array_add(next.trials, next.count, next.capacity), &problems);
    if (!*ended)
        status =
            store_sweep_add_trials(job_manager_store(m), sweep->id, next.trials, next.count, e);
    store_sweep_clear(&next);
    free(order);
    problems_clear(&problems);
    return status;
}

/* Adds the next point of method tpe once it is due: it depends on the points before the last
 * `concurrency` - 1 only, so that the same results lead to the same points in whatever order jobs
 * end. Failed and stopped points count as the worst. Returns 1 if it has added one. */
static int sweep_add_point(struct job_manager *m, const struct store_sweep *sweep, int64_t active,
                           struct error *e)
{
    const json_t *d = sweep->document;
    int64_t number = (int64_t)sweep->count, max = json_get_integer(d, "concurrency", 1);
    struct store_sweep next = {0};
    struct problems ignored = {0};

    if (strcmp(json_get_text(d, "method", ""), "tpe") != 0 || active >= max ||
        number >= json_get_integer(d, "samples", 0) || sweep_all_failed(sweep))
        return 0;
    for (int64_t i = 0; i <= number - max; i++)
        if (sweep_has_state(&sweep->trials[i], "submitted"))
            return 0;
    json_t *points = json_array();
    struct store_trial **order = sweep_rank(sweep);
    for (size_t i = 0; i < sweep->count; i++)
        if (order[i]->number <= number - max && !sweep_has_state(order[i], "cancelled"))
            json_array_append_new(points, json_loads(order[i]->point, 0, NULL));
    sweep_fill_trial(m, d, NULL, 0, number, sweep_tpe_point(d, points, number), 0,
                     &array_add(next.trials, next.count, next.capacity), &ignored);
    int status = store_sweep_add_trials(job_manager_store(m), sweep->id, next.trials, 1, e);
    store_sweep_clear(&next);
    problems_clear(&ignored);
    json_decref(points);
    free(order);
    return status ? status : 1;
}

static int sweep_go_on(struct job_manager *m, struct store_sweep *sweep, struct error *e)
{
    int64_t active = 0, waiting = 0;
    int64_t max = json_get_integer(sweep->document, "concurrency", 0);
    bool ended = false;
    int status = 0;

    for (size_t i = 0; !status && i < sweep->count; i++) {
        if (sweep_has_state(&sweep->trials[i], "submitted"))
            status = sweep_take_result(m, sweep, &sweep->trials[i], e);
        active += sweep_has_state(&sweep->trials[i], "submitted");
    }
    for (size_t i = 0; !status && i < sweep->count; i++) {
        if (!sweep_has_state(&sweep->trials[i], "waiting"))
            continue;
        if (active < max && sweep_look.capacity > 0)
            status = sweep_submit_trial(m, sweep, &sweep->trials[i], e);
        active += sweep_has_state(&sweep->trials[i], "submitted");
        waiting += sweep_has_state(&sweep->trials[i], "waiting");
    }
    if (!status && !waiting)
        status = sweep_add_point(m, sweep, active, e);
    if (status || active || waiting)
        return status;
    status = sweep_promote(m, sweep, &ended, e);
    if (status || !ended)
        return status ? status : 1;
    return store_sweep_end(job_manager_store(m), sweep->id,
                           sweep_all_failed(sweep) ? "failed" : "succeeded", clock_now(), e);
}

/* Called for each running sweep, oldest first, and again while it returns 1. */
typedef int sweep_visit(struct job_manager *m, struct store_sweep *sweep, struct error *e);

static bool sweeps_visit_running(struct job_manager *m, sweep_visit *visit)
{
    bool fine = true;
    int64_t ids[SWEEPS_RUNNING_MAX];
    struct store_sweep sweep;
    struct error e;
    size_t count;

    if (store_sweep_ids(job_manager_store(m), true, 0, ids, SWEEPS_RUNNING_MAX, &count, &e))
        return false;
    for (size_t i = count; i-- > 0;) {
        int status = 1;
        while (status > 0) {
            status = store_sweep_get(job_manager_store(m), ids[i], &sweep, &e);
            if (!status)
                status = visit(m, &sweep, &e);
            store_sweep_clear(&sweep);
        }
        if (status && e.code != ERR_CONFLICT) { /* it may have been cancelled meanwhile */
            log_warning("sweep %lld: %s", (long long)ids[i], e.text);
            fine = false;
        }
    }
    return fine;
}

double sweeps_go_on(struct job_manager *m)
{
    sweep_look.capacity = SUBMITTED_A_LOOK;
    sweep_look.slurm_away = false;
    bool fine = sweeps_visit_running(m, sweep_go_on);
    if (atomic_exchange(&some_end, false))
        fine = sweeps_cancel_rest(m) && fine;
    return sweep_look.capacity <= 0 ? 0
           : sweep_look.slurm_away  ? AWAY_SECONDS
           : fine                   ? INFINITY
                                    : AGAIN_SECONDS;
}

/* Early stopping. A running trial is compared with the others of its rung, running or ended, at its
 * newest step (or evaluation), once `from` of its steps are done and at least `least` others have
 * come as far. Trials with another number of steps have another schedule and are not compared. It
 * is stopped if it is worse than the median of the others (Golovin et al., "Google Vizier", KDD
 * 2017, 3.2.2, who compare with averages of the whole past), or, by rule rung, if as many others as
 * will be promoted are better. */
#define WINDOW_MAX 1000 /* steps averaged: a fifth of those done, up to this many */

struct early_stopping {
    struct job_manager *m;
    const struct store_sweep *sweep;
    const char *metric;
    bool maximises, by_median, evaluated;
    double from, eta;
    size_t least;
};

struct step_mean {
    size_t index; /* column of event_metric_at */
    double sum, count;
    int64_t last_step;
};

static void sweep_add_part(void *context, const struct store_metric_part *part)
{
    struct step_mean *mean = context;

    mean->sum += part->of[mean->index].sum;
    mean->count += part->of[mean->index].count;
    mean->last_step = part->step;
}

static double sweep_mean_at(const struct early_stopping *s, int64_t job, int64_t step)
{
    struct step_mean mean = {0};
    struct error ignored;
    int64_t window = step / 5 < 1 ? 1 : step / 5 > WINDOW_MAX ? WINDOW_MAX : step / 5;

    while (event_metric_at(mean.index) && strcmp(event_metric_at(mean.index)->name, s->metric) != 0)
        mean.index++;
    if (!event_metric_at(mean.index) ||
        store_metric_each(job_manager_store(s->m), job, step - window + 1, window, sweep_add_part,
                          &mean, &ignored))
        return NAN;
    return mean.last_step == step && mean.count > 0 ? mean.sum / mean.count : NAN;
}

/* Gets the metric of the evaluation at a step; step 0: of the newest one, and sets *step. */
static double sweep_evaluation_at(const struct early_stopping *s, int64_t job, int64_t *step)
{
    int64_t wanted = *step;
    struct error ignored;
    double value = NAN;
    const json_t *eval;
    json_t *evals;
    size_t i;

    if (store_eval_list(job_manager_store(s->m), job, &evals, &ignored))
        return NAN;
    json_array_foreach (evals, i, eval) {
        int64_t at = json_integer_value(json_object_get(eval, "step"));
        if (wanted ? at != wanted : at < *step)
            continue;
        *step = at;
        value = json_number_value(json_object_get(eval, s->metric));
    }
    json_decref(evals);
    return value;
}

static double sweep_metric_at(const struct early_stopping *s, int64_t job, int64_t *step)
{
    return s->evaluated ? sweep_evaluation_at(s, job, step) : sweep_mean_at(s, job, *step);
}

static double *sweep_others_at(const struct early_stopping *s, const struct store_trial *t,
                               const struct store_job *job, int64_t step, size_t *count)
{
    double *values = xcalloc(s->sweep->count, sizeof *values);

    *count = 0;
    for (size_t i = 0; i < s->sweep->count; i++) {
        const struct store_trial *o = &s->sweep->trials[i];
        struct store_job other;
        struct error ignored;
        if (o == t || o->rung != t->rung || o->job_id == 0 ||
            store_job_get(job_manager_store(s->m), o->job_id, &other, &ignored))
            continue;
        double value = other.train_steps == job->train_steps && other.step >= step
                           ? sweep_metric_at(s, o->job_id, &step)
                           : NAN;
        store_job_clear(&other);
        if (isnan(value))
            continue;
        size_t at = (*count)++;
        for (; at > 0 && (values[at - 1] > value) != s->maximises && values[at - 1] != value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
    return values;
}

/* Returns why the trial is to be stopped, or NULL. The caller frees it. */
static char *sweep_reason_to_stop(const struct early_stopping *s, const struct store_trial *t,
                                  const struct store_job *job)
{
    int64_t step = s->evaluated ? 0 : job->step;
    double mine = sweep_metric_at(s, job->id, &step), bar = NAN;
    size_t count, in_rung = 0;

    if (isnan(mine) || step >= job->train_steps ||
        (double)step < s->from * (double)job->train_steps)
        return NULL;
    for (size_t i = 0; i < s->sweep->count; i++)
        in_rung += s->sweep->trials[i].rung == t->rung;
    double *others = sweep_others_at(s, t, job, step, &count);
    size_t promoted = s->by_median ? 0 : (size_t)ceil((double)in_rung / s->eta);
    if (count >= s->least && s->by_median)
        bar = (others[(count - 1) / 2] + others[count / 2]) / 2;
    else if (count >= s->least && count >= promoted)
        bar = others[promoted - 1];
    free(others);
    if (isnan(bar) || (s->maximises ? mine >= bar : mine <= bar))
        return NULL;
    return xasprintf("stopped at step %lld: its %s of %.6g is worse than %.6g, %s %zu others",
                     (long long)step, s->metric, mine, bar,
                     s->by_median ? "the median of" : "the last to be promoted of", count);
}

/* Stores the reason first: after a crash, the trial is cancelled again for the same reason. */
static void sweep_stop_trial(const struct early_stopping *s, struct store_trial *t, char *why)
{
    struct error e;
    char by[32];

    if (!t->reason) {
        t->reason = why;
        if (store_sweep_set_trial(job_manager_store(s->m), s->sweep->id, t, &e))
            return;
        log_info("sweep %lld, job %lld: %s", (long long)s->sweep->id, (long long)t->job_id, why);
    }
    snprintf(by, sizeof by, "sweep %lld", (long long)s->sweep->id);
    job_cancel(s->m, t->job_id, by, &e); /* it may have just ended */
}

static int sweep_stop_losers(struct job_manager *m, struct store_sweep *sweep, struct error *e)
{
    const json_t *d = sweep->document, *stop = json_object_get(d, "early_stop");
    const char *rule = json_get_text(stop, "rule", "none");
    struct early_stopping s = {
        .m = m,
        .sweep = sweep,
        .metric = json_get_text(d, "metric", "top1"),
        .maximises = strcmp(json_get_text(d, "goal", ""), "max") == 0,
        .by_median = strcmp(rule, "median") == 0,
        .from = json_get_number(stop, "from", 0),
        .eta = json_get_number(json_object_get(d, "budget"), "eta", 0),
        .least = (size_t)json_get_integer(stop, "least", 0),
    };

    s.evaluated = strncmp(s.metric, "top", 3) == 0;
    for (size_t i = 0; i < sweep->count && strcmp(rule, "none") != 0; i++) {
        struct store_trial *t = &sweep->trials[i];
        struct store_job job;
        char *why = NULL;
        if (!sweep_has_state(t, "submitted") ||
            store_job_get(job_manager_store(m), t->job_id, &job, e))
            continue;
        if ((job.state == JOB_RUNNING || job.state == JOB_EVALUATING) &&
            !store_job_cancel_asked(&job) &&
            (t->reason || (why = sweep_reason_to_stop(&s, t, &job))))
            sweep_stop_trial(&s, t, why);
        store_job_clear(&job);
    }
    return 0;
}

void sweeps_stop_losers(struct job_manager *m)
{
    sweeps_visit_running(m, sweep_stop_losers);
}

static json_t *sweep_trial_to_json(const struct store_trial *t, const json_t *d)
{
    double budget = sweep_budget(d, t->rung);

    return json_pack(
        "{s:I, s:I, s:o, s:s, s:s?, s:o, s:o, s:o}", "number", (json_int_t)t->number, "rung",
        (json_int_t)t->rung, "point", json_loads(t->point, 0, NULL), "state", t->state, "reason",
        t->reason, "job", json_integer_or_null(t->job_id > 0, t->job_id), "metric",
        json_number_or_null(t->metric), "budget", budget > 0 ? json_number(budget) : json_null());
}

static json_t *sweep_reason_to_json(const struct store_sweep *sweep)
{
    const struct store_trial *t = sweep_all_failed(sweep);
    char rung[64] = "", job[64];

    if (strcmp(sweep->state, "failed") != 0 || !t)
        return json_null();
    if (sweep_budget(sweep->document, t->rung) > 0)
        snprintf(rung, sizeof rung, " of rung %lld", (long long)t->rung);
    snprintf(job, sizeof job, "job %lld failed", (long long)t->job_id);
    return json_sprintf("all points%s failed; point %lld: %s", rung, (long long)t->number,
                        t->reason ? t->reason : job);
}

json_t *sweep_to_json(const struct store_sweep *sweep)
{
    json_t *d = sweep->document, *trials = json_array(), *best = NULL;
    struct store_trial **order = sweep_rank(sweep);

    for (size_t i = 0; i < sweep->count; i++) {
        json_array_append_new(trials, sweep_trial_to_json(order[i], d));
        if (!best && !isnan(order[i]->metric)) /* the highest rung with a result */
            best = sweep_trial_to_json(order[i], d);
    }
    free(order);
    return json_pack(
        "{s:I, s:s?, s:s?, s:s, s:o, s:o, s:o, s:o, s:o, s:O}", "id", (json_int_t)sweep->id, "name",
        sweep->name, "submitted_by", sweep->submitted_by, "state", sweep->state, "reason",
        sweep_reason_to_json(sweep), "created_at", json_number(sweep->created_at), "finished_at",
        sweep->finished_at > 0 ? json_number(sweep->finished_at) : json_null(), "best",
        best ? best : json_null(), "trials", trials, "document", d);
}
