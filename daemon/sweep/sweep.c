#include "daemon/store/audit.h"
#include "daemon/sweep/sweep.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/log.h"
#include "common/plan/plan_build.h"
#include "common/text.h"
#include "daemon/job/document.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_resources.h"
#include "common/xalloc.h"
#include "daemon/store/sweep.h"

/* The loop does nothing else while jobs are submitted: so many, then it looks after the others. */
#define SUBMITTED_A_LOOK 16
#define AGAIN_SECONDS    10
#define AWAY_SECONDS     30 /* a Slurm that hangs holds the loop up for ten seconds each time */

/* A sweep may have ended while jobs of its trials have not. After a start nobody knows. */
static atomic_bool some_end = true;

static bool sweep_has_state(const struct store_trial *t, const char *state)
{
    return strcmp(t->state, state) == 0;
}

/* ---- a new one */

/* A trial's document must be right; else NULL and why. */
static struct job_spec *sweep_parse_trial(struct job_manager *m, json_t *document,
                                          const struct sweep_permit *permit, struct problems *own)
{
    struct job_spec *spec = job_data_read(document, own);
    struct error e;

    if (spec && own->count == 0 && permit)
        permit->check(spec, permit->context, own);
    if (spec && own->count == 0 && job_check_fits(m, spec, own, &e))
        problems_add(own, "/cluster", NULL, "%s", e.text);
    if (own->count == 0)
        return spec;
    job_spec_destroy(spec);
    return NULL;
}

static int sweep_fill_trial(struct job_manager *m, const json_t *d,
                            const struct sweep_permit *permit, int64_t rung, int64_t number,
                            struct store_trial *t, struct problems *own, struct error *e)
{
    json_t *point = sweep_point(d, number), *job = sweep_job(d, point, rung);
    struct job_spec *spec = sweep_parse_trial(m, job, permit, own);
    int status = 0;

    *t = (struct store_trial){.rung = rung, .number = number, .metric = NAN};
    t->point = json_to_text(point, JSON_COMPACT);
    /* A document that is refused fails its trial when it is submitted, with the reason. */
    t->spec = job_json_text(spec ? job_spec_to_json(spec) : json_incref(job));
    t->state = strdup("waiting");
    if (!t->point || !t->spec || !t->state)
        status = error_set(e, ERR_NO_MEMORY, "no memory for a sweep's trials");
    job_spec_destroy(spec);
    json_decref(point);
    json_decref(job);
    return status;
}

/* Of a point, for a message: cut between characters. */
static char *sweep_shorten(const char *text)
{
    size_t bytes = strlen(text) < 300 ? strlen(text) : 300;

    bytes -= text_incomplete(text, bytes);
    return xstrndup(text, bytes);
}

/* What is wrong with a point, under /base, with its values. */
static void sweep_add_problems(struct problems *problems, const struct problems *own,
                               const struct store_trial *t)
{
    for (size_t i = 0; i < own->count && problems->count < SWEEP_PROBLEMS_MAX; i++) {
        const struct problem *p = &own->items[i];
        char *pointer;
        if (asprintf(&pointer, "/base%s", p->pointer) < 0)
            abort();
        char *point = sweep_shorten(t->point);
        problems_add(problems, pointer, p->suggestion, "%s (point %lld: %s)", p->message,
                     (long long)t->number, point);
        free(point);
        free(pointer);
    }
}

/* All points of the first rung, until there is enough wrong with them. */
static int sweep_fill_trials(struct job_manager *m, const json_t *d,
                             const struct sweep_permit *permit, struct store_sweep *sweep,
                             struct problems *problems, struct error *e)
{
    json_t *point;
    size_t bytes = 0;
    int status = 0;

    for (int64_t i = 0; !status && (point = sweep_point(d, i)); i++) {
        struct problems own = {0};
        json_decref(point);
        if (problems->count >= SWEEP_PROBLEMS_MAX) {
            problems_add(problems, "/parameters", NULL,
                         "the points from %lld on were not checked, as enough is wrong before",
                         (long long)i);
            break;
        }
        struct store_trial *more =
            array_grow(sweep->trials, sweep->count, &sweep->room, sizeof *sweep->trials);
        if (!more)
            return error_set(e, ERR_NO_MEMORY, "no memory for a sweep's trials");
        sweep->trials = more;
        status = sweep_fill_trial(m, d, permit, 0, i, &more[sweep->count], &own, e);
        sweep_add_problems(problems, &own, &more[sweep->count]);
        bytes += more[sweep->count].spec ? strlen(more[sweep->count].spec) : 0;
        sweep->count++;
        problems_clear(&own);
        if (bytes > SWEEP_TEXT_MAX) {
            problems_add(problems, "/parameters", NULL,
                         "the documents of the first %zu points exceed %zu MiB: use fewer points "
                         "or a shorter base",
                         sweep->count, SWEEP_TEXT_MAX >> 20);
            break;
        }
    }
    return status;
}

/* What the budget of each rung makes of the first point: the others differ in their parameters, of
 * which none is the budget's key. */
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
        json_t *point = sweep_point(d, 0), *job = sweep_job(d, point, rung);
        struct job_spec *spec = sweep_parse_trial(m, job, NULL, &own);
        struct job_cores cores = {0};
        if (spec && job_share_cores(m, spec, sweep->submitted_by, &cores, &own) == 0) {
            job_cores_tell(&cores, &inputs);
            plan_inputs_share_out(spec, &inputs);
            plan_destroy(plan_make(spec, &inputs, &own));
        }
        if (spec && key && strcmp(key, "/epochs") == 0 && spec->has_steps)
            problems_add(problems, "/budget/key", "/steps",
                         "steps is set, and decides instead of epochs how long a job trains");
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

/* A sweep that never measures what it is about would succeed without a result. */
static void sweep_check_metric(const char *metric, const struct job_spec *spec,
                               struct problems *problems)
{
    if (!spec->data.eval && (strcmp(metric, "top1") == 0 || strcmp(metric, "top5") == 0))
        problems_add(problems, "/metric", "loss",
                     "%s is measured on data.eval, which the base does not name: add it, or "
                     "compare by loss, images_per_sec or ttt_seconds",
                     metric);
}

static void sweep_check_data(const struct job_spec *spec, const struct plan_data *data,
                             struct problems *problems)
{
    struct problems own = {0};
    char pointer[64];

    plan_check_data(spec, data, &own);
    for (size_t i = 0; i < own.count; i++) {
        snprintf(pointer, sizeof pointer, "/base%s", own.items[i].pointer);
        problems_add(problems, pointer, NULL, "%s", own.items[i].message);
    }
    problems_clear(&own);
}

static int sweep_count_images(struct job_manager *m, const json_t *d, struct store_sweep *sweep,
                              struct problems *problems, struct error *e)
{
    json_t *document = json_loads(sweep->trials[0].spec, 0, NULL);
    struct problems ignored = {0};
    struct job_spec *spec = job_spec_parse(document, NULL, NULL, &ignored);
    struct plan_inputs inputs = {0};
    const char *pointer;
    int status = spec ? plan_inputs_count(spec, &inputs, &pointer, e) : 0;

    if (status) {
        char where[32];
        snprintf(where, sizeof where, "/base%s", pointer);
        problems_add(problems, where, NULL, "%s", e->text);
    }
    struct job_cores cores;
    if (spec)
        sweep_check_metric(json_string_value(json_object_get(d, "metric")), spec, problems);
    if (spec && !status) {
        sweep_check_data(spec, &inputs.data, problems);
        job_share_cores(m, spec, sweep->submitted_by, &cores,
                        problems); /* known now is better than failed points */
    }
    sweep->train_images = inputs.train_images;
    sweep->eval_images = inputs.eval_images;
    job_spec_destroy(spec);
    json_decref(document);
    problems_clear(&ignored);
    return 0;
}

int sweep_make(struct job_manager *m, const json_t *d, const struct sweep_new *new,
               struct store_sweep *sweep, struct problems *problems, struct error *e)
{
    const char *name = json_string_value(json_object_get(d, "name"));

    sweep->submitted_by = new->key.by ? strdup(new->key.by) : NULL;
    int status = sweep_fill_trials(m, d, &new->permit, sweep, problems, e);

    if (!status && problems->count == 0)
        status = sweep_count_images(m, d, sweep, problems, e);
    if (!status && problems->count == 0)
        sweep_check_rungs(m, d, sweep, problems);
    sweep->name = name ? strdup(name) : NULL;
    sweep->document = json_to_text(d, JSON_COMPACT);
    return status;
}

static void sweep_audit(struct job_manager *m, enum store_audit_kind what, int64_t id,
                        const char *by, const char *done)
{
    struct store_audit line = {what, id, by, NULL, clock_now()};

    log_info("sweep %lld: %s by %s", (long long)id, done, job_by_words(by));
    store_audit_add(m->store, &line);
}

int sweep_create(struct job_manager *m, const struct sweep_new *new, struct problems *problems,
                 int64_t *id, bool *existed, struct error *e)
{
    struct store_sweep sweep = {.created_at = clock_now()};
    int status = store_sweep_find_key(m->store, &new->key, id, e);

    *existed = *id > 0;
    if (status || *existed)
        return status;
    json_t *d = sweep_document_check(new->document, problems);
    if (!d)
        return 0;
    status = sweep_make(m, d, new, &sweep, problems, e);
    if (!status && problems->count == 0)
        status = store_sweep_insert(m->store, &sweep, &new->key, existed, e);
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

/* ---- its way */

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
                             const json_t *d, struct store_trial *t, struct error *e)
{
    struct store_job job;
    int status = store_job_get(m->store, t->job_id, &job, e);

    if (status == -(int)ERR_NOT_FOUND) { /* removed by its user */
        sweep_set_state(t, "cancelled");
        return store_sweep_set_trial(m->store, sweep->id, t, e);
    }
    if (status)
        return status;
    if (job.state == JOB_SUCCEEDED || job.state == JOB_FAILED || job.state == JOB_CANCELLED) {
        bool stopped = job.state == JOB_CANCELLED && t->reason;
        sweep_set_state(t, stopped ? "stopped" : job_state_name(job.state));
        if (job.state == JOB_SUCCEEDED)
            t->metric = sweep_metric(&job, json_string_value(json_object_get(d, "metric")));
        status = store_sweep_set_trial(m->store, sweep->id, t, e);
    }
    store_job_clear(&job);
    return status;
}

/* ---- cancelled */

static int sweep_trial_cancel(struct job_manager *m, const struct store_sweep *sweep,
                              struct store_trial *t, const char *by, struct error *e)
{
    struct store_job job;
    int status = store_job_get(m->store, t->job_id, &job, e);

    if (status)
        return status == -(int)ERR_NOT_FOUND ? 0 : status;
    bool asked = store_job_cancel_asked(&job);
    store_job_clear(&job);
    status = asked ? 0 : job_cancel(m, t->job_id, by, e);
    if (status && e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND) /* it may just have ended */
        log_warning("sweep %lld, job %lld: %s", (long long)sweep->id, (long long)t->job_id,
                    e->text);
    return 0;
}

/* Of a sweep that has ended, so that no job of it is submitted any more. *left: jobs of it have not
 * ended. */
static int sweep_cancel_trials(struct job_manager *m, int64_t id, const char *by, bool *left,
                               struct error *e)
{
    struct store_sweep sweep;
    int status = store_sweep_get(m->store, id, &sweep, e);
    json_t *d = status ? NULL : json_loads(sweep.document, 0, NULL);

    for (size_t i = 0; !status && i < sweep.count; i++) {
        struct store_trial *t = &sweep.trials[i];
        if (!sweep_has_state(t, "submitted"))
            continue;
        status = sweep_trial_cancel(m, &sweep, t, by, e);
        if (!status)
            status = sweep_take_result(m, &sweep, d, t, e);
        *left = *left || sweep_has_state(t, "submitted");
    }
    json_decref(d);
    store_sweep_clear(&sweep);
    return status;
}

int sweep_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    bool left = false;
    struct error later;
    int status = store_sweep_end(m->store, id, "cancelled", clock_now(), e);

    if (status)
        return status;
    sweep_audit(m, STORE_AUDIT_SWEEP_CANCEL, id, by, "cancelled");
    if (sweep_cancel_trials(m, id, by, &left, &later) || left)
        atomic_store(&some_end, true);
    job_manager_wake(m);
    return 0;
}

/* What a sweep_cancel left: jobs that take their time, and all of them after a kill -9. false:
 * something failed. */
static bool sweeps_cancel_rest(struct job_manager *m)
{
    int64_t ids[SWEEPS_RUNNING_MAX];
    bool left = false, fine = true;
    struct error e;
    size_t count;
    int status = store_sweep_ending(m->store, ids, SWEEPS_RUNNING_MAX, &count, &e);

    if (status) {
        log_warning("cancelled sweeps: %s", e.text);
        fine = false;
    }
    left = status || count == SWEEPS_RUNNING_MAX;
    for (size_t i = 0; !status && i < count; i++) {
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

/* ---- submission */

/* A fault of this machine or of Slurm, not of the job: it is tried again. */
static bool sweep_is_transient(const struct error *e)
{
    return e->code == ERR_IO || e->code == ERR_NO_SPACE || e->code == ERR_NO_MEMORY ||
           e->code == ERR_INTERNAL || e->code == ERR_TOO_MANY || e->code == ERR_UNREACHABLE ||
           e->code == ERR_BUSY;
}

/* Once a look: whoever is away then is not asked for every trial. */
static int sweep_ask_slurm(struct job_manager *m, const struct job_spec *spec, struct error *e)
{
    if (m->sweeps_slurm_away && spec->cluster.launcher == JOB_LAUNCHER_SLURM)
        return error_set(e, ERR_UNREACHABLE, "Slurm does not answer");
    return 0;
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
    job_cores_tell(&cores, inputs);
    if (inputs->speed.samples == 0 &&
        job_estimate_speed(m->store, spec, m->slots, sweep->submitted_by, &inputs->speed, e))
        return NULL;
    plan_inputs_share_out(spec, inputs);
    struct plan *plan = plan_make(spec, inputs, problems);
    inputs->workers = NULL; /* was of cores */
    inputs->cores_source = NULL;
    if (!plan)
        error_set(e, ERR_INVALID, "%s",
                  problems->count ? problems->items[0].message : "no plan can be made");
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
    char key[64];
    int status = 0;

    snprintf(key, sizeof key, STORE_TRIAL_KEY, (long long)sweep->id, (long long)t->rung,
             (long long)t->number);
    if (spec)
        plan = sweep_ask_slurm(m, spec, e)
                   ? NULL
                   : sweep_plan_trial(m, sweep, spec, &inputs, &problems, e);
    else
        error_set(e, ERR_INVALID, "%s",
                  problems.count ? problems.items[0].message : "no plan can be made");
    if (plan) {
        char who[32];
        snprintf(who, sizeof who, "sweep %lld", (long long)sweep->id);
        struct job_submission submission = {spec, plan, key, "sweep", who};
        status = job_submit(m, &submission, &problems, &t->job_id, NULL, e);
    } else {
        status = -(int)e->code;
    }
    m->sweeps_room--;
    m->sweeps_slurm_away = m->sweeps_slurm_away || status == -(int)ERR_UNREACHABLE;
    if (!status) {
        sweep_set_state(t, "submitted"); /* as it is stored with its job */
    } else if (e->code != ERR_CONFLICT && !sweep_is_transient(e)) {
        log_warning("sweep %lld, point %lld: %s", (long long)sweep->id, (long long)t->number,
                    e->text);
        free(t->reason);
        t->reason = text_escape_copy(e->text, "");
        sweep_set_state(t, "failed");
        status = store_sweep_set_trial(m->store, sweep->id, t, e);
    }
    plan_destroy(plan);
    job_spec_destroy(spec);
    json_decref(document);
    problems_clear(&problems);
    return status;
}

/* ---- ranking */

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

/* The best first; the caller frees the list. */
static struct store_trial **sweep_rank(const struct store_sweep *sweep, const json_t *d)
{
    struct store_trial **order = calloc(sweep->count + 1, sizeof(*order));
    const char *goal = json_string_value(json_object_get(d, "goal"));
    bool maximises = goal && strcmp(goal, "max") == 0;

    if (!order)
        abort();
    for (size_t i = 0; i < sweep->count; i++)
        order[i] = &sweep->trials[i];
    qsort_r(order, sweep->count, sizeof(*order), sweep_better_by, &maximises);
    return order;
}

/* The newest rung's first trial, if all trials of that rung failed or were refused; else NULL. */
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

/* The best 1/eta of the newest rung get the next budget. *ended: there is no next rung. */
static int sweep_promote(struct job_manager *m, const struct store_sweep *sweep, const json_t *d,
                         bool *ended, struct error *e)
{
    struct store_trial **order = sweep_rank(sweep, d);
    struct problems problems = {0};
    int64_t rung = order[0] ? order[0]->rung : 0;
    double eta = json_number_value(json_object_get(json_object_get(d, "budget"), "eta"));
    size_t count = 0, most = 0, made = 0;
    int status = 0;

    while (count < sweep->count && order[count]->rung == rung && !isnan(order[count]->metric))
        count++;
    for (size_t i = 0; i < sweep->count; i++)
        most += sweep->trials[i].rung == rung;
    *ended = sweep_budget(d, rung + 1) <= 0 || count == 0;
    most = (size_t)ceil((double)most / eta);
    struct store_trial *next = *ended ? NULL : calloc(most, sizeof *next);
    for (size_t i = 0; next && !status && i < count && i < most; i++)
        status =
            sweep_fill_trial(m, d, NULL, rung + 1, order[i]->number, &next[made++], &problems, e);
    if (next && !status)
        status = store_sweep_add_trials(m->store, sweep->id, next, made, e);
    for (size_t i = 0; i < made; i++) {
        free(next[i].point);
        free(next[i].spec);
        free(next[i].state);
        free(next[i].reason);
    }
    free(next);
    free(order);
    problems_clear(&problems);
    return status;
}

/* 1: something was promoted, which may run at once. */
static int sweep_go_on(struct job_manager *m, struct store_sweep *sweep, const json_t *d,
                       struct error *e)
{
    int64_t active = 0, waiting = 0;
    int64_t most = json_integer_value(json_object_get(d, "concurrency"));
    bool ended = false;
    int status = 0;

    for (size_t i = 0; !status && i < sweep->count; i++) {
        if (sweep_has_state(&sweep->trials[i], "submitted"))
            status = sweep_take_result(m, sweep, d, &sweep->trials[i], e);
        active += sweep_has_state(&sweep->trials[i], "submitted");
    }
    for (size_t i = 0; !status && i < sweep->count; i++) {
        if (!sweep_has_state(&sweep->trials[i], "waiting"))
            continue;
        if (active < most && m->sweeps_room > 0)
            status = sweep_submit_trial(m, sweep, &sweep->trials[i], e);
        active += sweep_has_state(&sweep->trials[i], "submitted");
        waiting += sweep_has_state(&sweep->trials[i], "waiting");
    }
    if (status || active || waiting)
        return status;
    status = sweep_promote(m, sweep, d, &ended, e);
    if (status || !ended)
        return status ? status : 1;
    return store_sweep_end(m->store, sweep->id, sweep_all_failed(sweep) ? "failed" : "succeeded",
                           clock_now(), e);
}

double sweeps_go_on(struct job_manager *m)
{
    m->sweeps_room = SUBMITTED_A_LOOK;
    m->sweeps_slurm_away = false;
    bool fine = sweeps_visit_running(m, sweep_go_on);
    if (atomic_exchange(&some_end, false))
        fine = sweeps_cancel_rest(m) && fine;
    return m->sweeps_room <= 0    ? 0
           : m->sweeps_slurm_away ? AWAY_SECONDS
           : fine                 ? INFINITY
                                  : AGAIN_SECONDS;
}

bool sweeps_visit_running(struct job_manager *m, sweep_visit *visit)
{
    bool fine = true;
    int64_t ids[SWEEPS_RUNNING_MAX];
    struct store_sweep sweep;
    struct error e;
    size_t count;

    if (store_sweep_ids(m->store, true, 0, ids, SWEEPS_RUNNING_MAX, &count, &e))
        return false;
    for (size_t i = count; i-- > 0;) {
        int status = 1;
        while (status > 0) {
            status = store_sweep_get(m->store, ids[i], &sweep, &e);
            json_t *d = status ? NULL : json_loads(sweep.document, 0, NULL);
            if (!status)
                status = visit(m, &sweep, d, &e);
            json_decref(d);
            store_sweep_clear(&sweep);
        }
        if (status && e.code != ERR_CONFLICT) { /* it was cancelled meanwhile */
            log_warning("sweep %lld: %s", (long long)ids[i], e.text);
            fine = false;
        }
    }
    return fine;
}

/* ---- as JSON */

static json_t *sweep_trial_to_json(const struct store_trial *t, const json_t *d)
{
    double budget = sweep_budget(d, t->rung);

    return json_pack(
        "{s:I, s:I, s:o, s:s, s:s?, s:o, s:o, s:o}", "number", (json_int_t)t->number, "rung",
        (json_int_t)t->rung, "point", json_loads(t->point, 0, NULL), "state", t->state, "reason",
        t->reason, "job", json_integer_or_null(t->job_id > 0, t->job_id), "metric",
        json_number_or_null(t->metric), "budget", budget > 0 ? json_number(budget) : json_null());
}

/* Why a sweep has failed; else null. */
static json_t *sweep_reason_to_json(const struct store_sweep *sweep, const json_t *d)
{
    const struct store_trial *t = sweep_all_failed(sweep);
    char rung[64] = "", job[64];

    if (strcmp(sweep->state, "failed") != 0 || !t)
        return json_null();
    if (sweep_budget(d, t->rung) > 0)
        snprintf(rung, sizeof rung, " of rung %lld", (long long)t->rung);
    snprintf(job, sizeof job, "job %lld failed", (long long)t->job_id);
    return json_sprintf("all points%s failed; point %lld: %s", rung, (long long)t->number,
                        t->reason ? t->reason : job);
}

json_t *sweep_to_json(const struct store_sweep *sweep)
{
    json_t *d = json_loads(sweep->document, 0, NULL), *trials = json_array();
    struct store_trial **order = sweep_rank(sweep, d);

    for (size_t i = 0; i < sweep->count; i++)
        json_array_append_new(trials, sweep_trial_to_json(order[i], d));
    /* Of the highest rung that has a result. */
    json_t *best = NULL;
    for (size_t i = 0; i < sweep->count && !best; i++)
        if (!isnan(order[i]->metric))
            best = sweep_trial_to_json(order[i], d);
    if (!best)
        best = json_null();
    free(order);
    return json_pack(
        "{s:I, s:s?, s:s?, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", (json_int_t)sweep->id, "name",
        sweep->name, "submitted_by", sweep->submitted_by, "state", sweep->state, "reason",
        sweep_reason_to_json(sweep, d), "created_at", json_number(sweep->created_at), "finished_at",
        sweep->finished_at > 0 ? json_number(sweep->finished_at) : json_null(), "best", best,
        "trials", trials, "document", d);
}
