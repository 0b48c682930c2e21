#include "daemon/sweep/sweep_preview.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/number.h"
#include "common/xalloc.h"
#include "common/net/arch.h"
#include "common/run/speed.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_resources.h"
#include "daemon/sweep/sweep_document.h"

/* Points planned in each rung above the first, because a thousand plans would take seconds. */
#define POINTS_PLANNED 100
#define KEYS_LISTED    3

struct known_speed {
    char key[SPEED_KEY_BYTES]; /* with image size 0 */
    int64_t image_size;
    double macs; /* per image */
    struct plan_speed speed;
};

struct preview {
    struct job_manager *m;
    int64_t slots; /* slots of this machine */
    int64_t points;
    const struct store_sweep *sweep;
    const json_t *document;
    struct plan_prices prices;
    struct known_speed *speeds; /* each speed once */
    size_t speed_count;
    json_t *unknown; /* keys without a speed, each with its workers */
    json_t *derived; /* image sizes whose speed is derived from that of another size */
    json_t *rungs;
    struct sweep_cost sum; /* over all rungs, like the fields below */
    struct plan_band elapsed;
    double images, evaluated;
    int64_t jobs, jobs_unknown;
};

struct rung_points {
    struct sweep_cost *costs;
    size_t count;
    size_t unknown;
    double images, evaluated; /* over all points */
    int64_t slots;            /* of the largest job; 0: uses none of this machine */
};

enum band_end { LOW, VALUE, HIGH };

static double sweep_band_end(const struct plan_band *band, enum band_end end)
{
    return end == LOW ? band->low : end == HIGH ? band->high : band->value;
}

static double sweep_sum_of(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* out must be large enough for all points. Returns false if an amount is unknown. */
static bool sweep_fill_jobs(const struct sweep_cost *points, size_t count,
                            const struct sweep_rung *r, enum sweep_amount amount, enum band_end end,
                            double *out)
{
    size_t jobs = (size_t)r->jobs;

    for (size_t i = 0; i < count; i++) {
        out[i] = sweep_band_end(&points[i].of[amount], end);
        if (isnan(out[i]))
            return false;
    }
    if (end == VALUE && jobs < count) {
        double mean = sweep_sum_of(out, count) / (double)count;
        for (size_t i = 0; i < jobs; i++)
            out[i] = mean;
    } else if (end != VALUE && (jobs < count || end == LOW)) {
        number_sort(out, count);
        if (end == HIGH)
            memmove(out, out + count - jobs, jobs * sizeof *out);
    }
    for (size_t i = (size_t)r->whole; end == LOW && i < jobs; i++)
        out[i] *= r->from; /* assume that the most expensive ones are stopped */
    return true;
}

/* Returns when the last job ends if each takes the first free place. */
static double sweep_last_end(const double *seconds, size_t count, int64_t together)
{
    size_t places = together < (int64_t)count ? (size_t)together : count;
    double *until = xcalloc(places, sizeof *until), last = 0;

    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        for (size_t p = 1; p < places; p++)
            if (until[p] < until[first])
                first = p;
        until[first] += seconds[i];
        last = fmax(last, until[first]);
    }
    free(until);
    return last;
}

void sweep_rung_cost(const struct sweep_cost *points, size_t count, const struct sweep_rung *r,
                     struct sweep_cost *sum, struct plan_band *elapsed)
{
    double *jobs = xcalloc(count + 1, sizeof *jobs), total[HIGH + 1], last[HIGH + 1];

    for (int amount = 0; amount < SWEEP_AMOUNTS; amount++) {
        for (int end = LOW; end <= HIGH; end++) {
            bool known = sweep_fill_jobs(points, count, r, (enum sweep_amount)amount,
                                         (enum band_end)end, jobs);
            total[end] = known ? sweep_sum_of(jobs, (size_t)r->jobs) : NAN;
            if (amount == SWEEP_SECONDS)
                last[end] = known ? sweep_last_end(jobs, (size_t)r->jobs, r->together) : NAN;
        }
        sum->of[amount] = (struct plan_band){total[VALUE], total[LOW], total[HIGH]};
    }
    /* In another order, even shorter jobs may end later. */
    *elapsed = (struct plan_band){last[VALUE], last[VALUE], last[VALUE]};
    if (last[LOW] < last[VALUE])
        elapsed->low = last[LOW];
    if (last[HIGH] > last[VALUE])
        elapsed->high = last[HIGH];
    free(jobs);
}

static double preview_macs_of(const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);

    return arch_training_macs(&shape);
}

/* Finds the speed with this key, except for its image size, that has the nearest size. */
static const struct known_speed *
preview_find_speed(const struct preview *p, const struct job_spec *spec, char key[SPEED_KEY_BYTES])
{
    const struct known_speed *found = NULL;
    int64_t size = spec->model.image_size;
    struct job_spec any = *spec; /* borrows its strings */

    any.model.image_size = 0;
    speed_key(&any, job_threads(spec, p->slots), key);
    for (size_t i = 0; i < p->speed_count; i++) {
        const struct known_speed *one = &p->speeds[i];
        if (strcmp(one->key, key) == 0 &&
            (!found || llabs(one->image_size - size) < llabs(found->image_size - size)))
            found = one;
    }
    return found;
}

static int preview_collect_speed(struct preview *p, const struct job_spec *spec, struct error *e)
{
    struct known_speed one = {.image_size = spec->model.image_size, .macs = preview_macs_of(spec)};
    const struct known_speed *same = preview_find_speed(p, spec, one.key);

    if (same && same->image_size == one.image_size)
        return 0;
    int status = job_estimate_speed(job_manager_store(p->m), spec, job_threads(spec, p->slots),
                                    p->sweep->submitted_by, &one.speed, e);
    if (!status && one.speed.samples > 0)
        p->speeds[p->speed_count++] = one;
    return status;
}

/* Scales the speed of the nearest image size by the multiply-adds; zeroed if none is known. */
static struct plan_speed preview_borrow_speed(struct preview *p, const struct job_spec *spec)
{
    struct plan_speed speed = {0};
    char key[SPEED_KEY_BYTES], sizes[64];
    const struct known_speed *known = preview_find_speed(p, spec, key);

    if (!known || known->image_size == spec->model.image_size)
        return speed; /* that speed was measured with the job's own workers */
    speed = known->speed;
    speed.image_seconds *= preview_macs_of(spec) / known->macs;
    snprintf(sizes, sizeof sizes, "%lld from %lld", (long long)spec->model.image_size,
             (long long)known->image_size);
    json_object_set_new(p->derived, sizes, json_true());
    return speed;
}

static struct job_spec *preview_point_spec(const struct preview *p, int64_t number, int64_t rung)
{
    struct problems ignored = {0};
    json_t *point = sweep_point(p->document, number);
    json_t *job = sweep_job(p->document, point, rung, 0);
    struct job_spec *spec = job_data_read(job, &ignored);

    json_decref(point);
    json_decref(job);
    problems_clear(&ignored);
    return spec;
}

/* before: part of the steps that an earlier rung has trained. */
static void preview_add_point(struct preview *p, const struct job_spec *spec, double before,
                              const struct plan *plan, struct rung_points *all)
{
    static const struct plan_band not_known = {NAN, NAN, NAN};
    const struct plan_predicted *predicted = &plan->predicted;
    struct sweep_cost *cost = &all->costs[all->count++];
    int64_t threads = job_threads(spec, p->slots);
    int64_t here =
        spec->cluster.launcher == JOB_LAUNCHER_LOCAL ? job_slots_needed(spec, p->slots) : 0;
    int64_t elsewhere = spec->cluster.nodes * spec->cluster.workers_per_node * threads;
    double hours = (double)(here > 0 ? here : elsewhere) / 3600; /* slot-hours per second */
    const struct plan_band *seconds = &predicted->ttt_seconds;
    char key[SPEED_KEY_BYTES];

    all->slots = here > all->slots ? here : all->slots;
    all->images += (double)plan_images_of_steps(plan, llround(before * (double)plan->train_steps),
                                                plan->train_steps);
    all->evaluated +=
        (double)plan->eval_images * ceil((1 - before) * (double)plan_evaluations(plan, spec));
    if (predicted->known) {
        *cost = (struct sweep_cost){
            .of = {[SWEEP_SECONDS] = *seconds,
                   [SWEEP_SLOT_HOURS] = {seconds->value * hours, seconds->low * hours,
                                         seconds->high * hours},
                   [SWEEP_NODE_HOURS] = predicted->node_hours,
                   [SWEEP_KWH] = predicted->kwh,
                   [SWEEP_COST] = predicted->cost}
        };
        for (int i = 0; i < SWEEP_AMOUNTS; i++) {
            cost->of[i].value *= 1 - before;
            cost->of[i].low *= 1 - before;
            cost->of[i].high *= 1 - before;
        }
        return;
    }
    for (int i = 0; i < SWEEP_AMOUNTS; i++)
        cost->of[i] = not_known;
    all->unknown++;
    speed_key(spec, threads, key);
    json_object_set_new(p->unknown, key, json_true());
}

static int preview_point(struct preview *p, int64_t number, int64_t rung, struct rung_points *all,
                         struct error *e)
{
    struct job_spec *spec = preview_point_spec(p, number, rung);
    struct problems problems = {0};

    if (!spec)
        return error_set(e, ERR_INTERNAL, "sweep point %lld is not a valid job", (long long)number);
    struct plan_inputs inputs = {.prices = p->prices,
                                 .node_share = job_node_share(spec, p->slots),
                                 .speed = preview_borrow_speed(p, spec)};
    double before = rung > 0 && sweep_continues(p->document)
                        ? sweep_budget(p->document, rung - 1) / sweep_budget(p->document, rung)
                        : 0;
    struct plan *plan = sweep_plan_trial(p->m, p->sweep, spec, &inputs, &problems, e);
    int status = plan ? 0 : -(int)e->code;
    if (plan)
        preview_add_point(p, spec, before, plan, all);
    problems_clear(&problems);
    job_spec_destroy(spec);
    plan_destroy(plan);
    return status;
}

/* slots: of the largest job. */
static struct sweep_rung preview_rung_of(const struct preview *p, int64_t jobs, int64_t slots)
{
    const json_t *stop = json_object_get(p->document, "early_stop");
    const char *rule = json_get_text(stop, "rule", "none");
    double eta = json_get_number(json_object_get(p->document, "budget"), "eta", 1);
    int64_t least = json_get_integer(stop, "least", 1);
    int64_t whole = strcmp(rule, "none") == 0   ? jobs
                    : strcmp(rule, "rung") == 0 ? (int64_t)ceil((double)jobs / eta)
                                                : (jobs + 1) / 2;
    int64_t together = json_get_integer(p->document, "concurrency", 1);
    int64_t cap = job_manager_limits(p->m).caps.slots;
    int64_t total = cap > 0 && cap < p->slots ? cap : p->slots;

    whole = whole > least ? whole : least; /* to be compared */
    if (slots > 0 && total / slots < together)
        together = total / slots;
    together = together < jobs ? together : jobs;
    return (struct sweep_rung){jobs, whole < jobs ? whole : jobs, json_get_number(stop, "from", 1),
                               together > 0 ? together : 1};
}

static json_t *preview_band_json(const struct plan_band *band)
{
    return plan_band_to_json(!isnan(band->value), band);
}

static void preview_add_band(struct plan_band *sum, const struct plan_band *more)
{
    sum->value += more->value;
    sum->low += more->low;
    sum->high += more->high;
}

static void preview_add_rung(struct preview *p, int64_t rung, int64_t jobs,
                             const struct rung_points *points)
{
    struct sweep_rung of = preview_rung_of(p, jobs, points->slots);
    double share = (double)jobs / (double)points->count, budget = sweep_budget(p->document, rung);
    struct plan_band elapsed;
    struct sweep_cost sum;

    sweep_rung_cost(points->costs, points->count, &of, &sum, &elapsed);
    json_array_append_new(
        p->rungs,
        json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "rung", (json_int_t)rung, "budget",
                  budget > 0 ? json_number(number_rounded(budget)) : json_null(), "jobs",
                  (json_int_t)jobs, "side_by_side", (json_int_t)of.together, "images",
                  (json_int_t)llround(points->images * share), "evaluated_images",
                  (json_int_t)llround(points->evaluated * share), "seconds",
                  preview_band_json(&elapsed), "slot_hours",
                  preview_band_json(&sum.of[SWEEP_SLOT_HOURS])));
    for (int i = 0; i < SWEEP_AMOUNTS; i++)
        preview_add_band(&p->sum.of[i], &sum.of[i]);
    preview_add_band(&p->elapsed, &elapsed);
    p->images += points->images * share;
    p->evaluated += points->evaluated * share;
    p->jobs += jobs;
    p->jobs_unknown += (int64_t)ceil((double)points->unknown * share - 1e-9);
}

static int preview_rungs(struct preview *p, struct error *e)
{
    int64_t points = (int64_t)p->sweep->count, jobs = p->points;
    double eta = json_get_number(json_object_get(p->document, "budget"), "eta", 1);
    int status = 0;

    for (int64_t i = 0; !status && i < points; i++) {
        struct job_spec *spec = preview_point_spec(p, i, 0);
        status = spec ? preview_collect_speed(p, spec, e) : 0;
        job_spec_destroy(spec);
    }
    for (int64_t rung = 0; !status && (rung == 0 || sweep_budget(p->document, rung) > 0); rung++) {
        struct rung_points all = {0};
        int64_t planned = rung > 0 && points > POINTS_PLANNED ? POINTS_PLANNED : points;
        planned = planned > jobs ? planned : jobs;
        all.costs = xcalloc((size_t)planned, sizeof *all.costs);
        for (int64_t i = 0; !status && i < planned; i++)
            status = preview_point(p, i * points / planned, rung, &all, e);
        if (!status)
            preview_add_rung(p, rung, jobs, &all);
        free(all.costs);
        jobs = (int64_t)ceil((double)jobs / eta);
    }
    return status;
}

/* Formats as "a, b, c and 4 more". */
static void preview_list_keys(const json_t *object, char *text, size_t bytes)
{
    size_t used = 0, listed = 0, count = json_object_size(object);
    const char *key;
    json_t *value;

    text[0] = '\0';
    json_object_foreach ((json_t *)object, key, value) {
        if (listed == KEYS_LISTED || used >= bytes)
            break;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", listed++ ? ", " : "", key);
    }
    if (count > listed && used < bytes)
        snprintf(text + used, bytes - used, " and %zu more", count - listed);
}

static json_t *preview_warnings(const struct preview *p)
{
    json_t *warnings = json_array();
    char keys[4 * SPEED_KEY_BYTES];

    if (json_object_size(p->unknown) > 0) {
        preview_list_keys(p->unknown, keys, sizeof keys);
        json_array_append_new(
            warnings,
            json_sprintf(
                "no speed is known yet for %lld of %lld jobs (%s): time and cost will be known "
                "once a similar job has ended or trainctl scale --weak has measured it",
                (long long)p->jobs_unknown, (long long)p->jobs, keys));
    }
    if (json_object_size(p->derived) > 0) {
        preview_list_keys(p->derived, keys, sizeof keys);
        json_array_append_new(
            warnings, json_sprintf("some image sizes have not been measured: their speed is "
                                   "derived from that of another size by the computation of an "
                                   "image (%s)",
                                   keys));
    }
    return warnings;
}

json_t *sweep_preview(struct job_manager *m, const struct sweep_new *new,
                      const struct plan_prices *prices, struct problems *problems, struct error *e)
{
    struct store_sweep sweep = {0};
    json_t *d = sweep_document_check(new->document, problems), *answer = NULL;

    if (!d)
        return NULL;
    sweep_make(m, d, new, &sweep, problems);
    struct preview p = {.m = m,
                        .slots = job_manager_total_slots(m),
                        .sweep = &sweep,
                        .document = d,
                        .prices = *prices,
                        .speeds = xcalloc(sweep.count + 1, sizeof *p.speeds),
                        .unknown = json_object(),
                        .derived = json_object(),
                        .rungs = json_array()};
    p.points = (int64_t)sweep.count;
    if (strcmp(json_get_text(d, "method", ""), "tpe") == 0) /* later points are not known yet */
        p.points = json_get_integer(d, "samples", p.points);
    if (problems->count == 0 && preview_rungs(&p, e) == 0)
        answer = must_alloc(
            json_pack("{s:s?, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:s?, s:O, s:o}",
                      "name", sweep.name, "points", (json_int_t)p.points, "jobs",
                      (json_int_t)p.jobs, "jobs_without_speed", (json_int_t)p.jobs_unknown,
                      "images", (json_int_t)llround(p.images), "evaluated_images",
                      (json_int_t)llround(p.evaluated), "seconds", preview_band_json(&p.elapsed),
                      "slot_hours", preview_band_json(&p.sum.of[SWEEP_SLOT_HOURS]), "node_hours",
                      preview_band_json(&p.sum.of[SWEEP_NODE_HOURS]), "kwh",
                      preview_band_json(&p.sum.of[SWEEP_KWH]), "cost",
                      preview_band_json(&p.sum.of[SWEEP_COST]), "currency", p.prices.currency,
                      "rungs", p.rungs, "warnings", preview_warnings(&p)));
    json_decref(p.rungs);
    json_decref(p.derived);
    json_decref(p.unknown);
    free(p.speeds);
    store_sweep_clear(&sweep);
    json_decref(d);
    return answer;
}
