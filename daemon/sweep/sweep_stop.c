/*
 * Losers of a sweep are stopped while they run ("early_stop" of its document).
 *
 * A running trial is compared with the others of its rung, whether they run or have ended, by the
 * metric at the same step s: its newest step (or evaluation) from which `from` of its steps are
 * done. Only trials that came as far count, and at least `least` of them must have. Trials of a
 * rung have schedules of one length where steps or epochs are not among the parameters; a trial
 * with another number of steps is not compared.
 *
 *   median  it is worse than the median of the others (Golovin et al., "Google Vizier", KDD 2017,
 *           3.2.2, who compare with averages of the whole past; here it is the same recent steps)
 *   rung    of halving: as many others as will go on to the next rung are better
 *
 * loss and images_per_sec at a step are means over the last fifth of the steps up to it, as single
 * batches say little; top1 and top5 are those of the evaluation at that step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/run/attempt.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/store/metric.h"
#include "daemon/sweep/sweep.h"

#define WINDOW_MAX 1000 /* steps of a mean */

enum rule { RULE_NONE, RULE_MEDIAN, RULE_RUNG };

struct race {
    struct job_manager *m;
    const struct store_sweep *sweep;
    const char *metric;
    bool maximises;
    enum rule rule;
    double from, eta;
    size_t least;
};

static void sweep_stop_read_race(struct race *r, const json_t *d)
{
    const json_t *stop = json_object_get(d, "early_stop");
    const char *rule = json_string_value(json_object_get(stop, "rule"));
    const char *goal = json_string_value(json_object_get(d, "goal"));

    r->metric = json_string_value(json_object_get(d, "metric"));
    r->maximises = goal && strcmp(goal, "max") == 0;
    r->rule = !rule                         ? RULE_NONE
              : strcmp(rule, "median") == 0 ? RULE_MEDIAN
              : strcmp(rule, "rung") == 0   ? RULE_RUNG
                                            : RULE_NONE;
    r->from = json_number_value(json_object_get(stop, "from"));
    r->least = (size_t)json_integer_value(json_object_get(stop, "least"));
    r->eta = json_number_value(json_object_get(json_object_get(d, "budget"), "eta"));
}

/* ---- a metric at a step */

struct mean {
    size_t index; /* of event_metric_at */
    double sum, count;
    int64_t last_step;
};

static void sweep_stop_race_add_part(void *context, const struct store_metric_part *part)
{
    struct mean *mean = context;

    mean->sum += part->of[mean->index].sum;
    mean->count += part->of[mean->index].count;
    mean->last_step = part->step;
}

static double sweep_stop_mean_at(const struct race *r, int64_t job, int64_t step)
{
    struct mean mean = {0};
    struct error ignored;
    int64_t window = step / 5 < 1 ? 1 : step / 5 > WINDOW_MAX ? WINDOW_MAX : step / 5;

    while (event_metric_at(mean.index) && strcmp(event_metric_at(mean.index)->name, r->metric) != 0)
        mean.index++;
    if (!event_metric_at(mean.index) ||
        store_metric_each(r->m->store, job, step - window + 1, window, sweep_stop_race_add_part,
                          &mean, &ignored))
        return NAN;
    return mean.last_step == step && mean.count > 0 ? mean.sum / mean.count : NAN;
}

/* Of the evaluation at a step; step 0: of the newest, whose step it becomes. */
static double sweep_stop_evaluation_at(const struct race *r, int64_t job, int64_t *step)
{
    struct error ignored;
    double value = NAN;
    const json_t *eval;
    json_t *evals;
    size_t i;

    if (store_eval_list(r->m->store, job, &evals, &ignored))
        return NAN;
    int64_t wanted = *step;
    json_array_foreach (evals, i, eval) {
        int64_t at = json_integer_value(json_object_get(eval, "step"));
        if (wanted ? at != wanted : at < *step)
            continue;
        *step = at;
        value = json_number_value(json_object_get(eval, r->metric));
    }
    json_decref(evals);
    return value;
}

static bool sweep_stop_is_evaluated(const struct race *r)
{
    return strncmp(r->metric, "top", 3) == 0;
}

static double sweep_stop_race_value_at(const struct race *r, int64_t job, int64_t step)
{
    return sweep_stop_is_evaluated(r) ? sweep_stop_evaluation_at(r, job, &step)
                                      : sweep_stop_mean_at(r, job, step);
}

/* ---- the verdict */

/* The others' values at the step, best first; the caller frees them. */
static double *sweep_stop_others_at(const struct race *r, const struct store_trial *t,
                                    const struct store_job *job, int64_t step, size_t *count)
{
    double *values = calloc(r->sweep->count, sizeof *values);

    *count = 0;
    for (size_t i = 0; values && i < r->sweep->count; i++) {
        const struct store_trial *o = &r->sweep->trials[i];
        struct store_job other;
        struct error ignored;
        if (o == t || o->rung != t->rung || o->job_id == 0 ||
            store_job_get(r->m->store, o->job_id, &other, &ignored))
            continue;
        double value = other.train_steps == job->train_steps && other.step >= step
                           ? sweep_stop_race_value_at(r, o->job_id, step)
                           : NAN;
        store_job_clear(&other);
        if (isnan(value))
            continue;
        size_t at = (*count)++;
        for (; at > 0 && (values[at - 1] > value) != r->maximises && values[at - 1] != value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
    return values;
}

static bool sweep_stop_is_worse(const struct race *r, double value, double than)
{
    return r->maximises ? value < than : value > than;
}

static size_t sweep_stop_trials_of_rung(const struct store_sweep *sweep, int64_t rung)
{
    size_t count = 0;

    for (size_t i = 0; i < sweep->count; i++)
        count += sweep->trials[i].rung == rung;
    return count;
}

/* What the trial is compared with: the median, or the last of those that go on. NAN: nothing. */
static double sweep_stop_bar_of(const struct race *r, const struct store_trial *t,
                                const double *values, size_t count)
{
    if (count < r->least)
        return NAN;
    if (r->rule == RULE_MEDIAN)
        return (values[(count - 1) / 2] + values[count / 2]) / 2;
    size_t go_on = (size_t)ceil((double)sweep_stop_trials_of_rung(r->sweep, t->rung) / r->eta);
    return count >= go_on ? values[go_on - 1] : NAN;
}

static bool sweep_stop_has_lost(const struct race *r, const struct store_trial *t,
                                const struct store_job *job, char **why)
{
    int64_t step = sweep_stop_is_evaluated(r) ? 0 : job->step;
    double mine = sweep_stop_is_evaluated(r) ? sweep_stop_evaluation_at(r, job->id, &step)
                                             : sweep_stop_mean_at(r, job->id, step);
    size_t count;

    if (isnan(mine) || step >= job->train_steps ||
        (double)step < r->from * (double)job->train_steps)
        return false;
    double *others = sweep_stop_others_at(r, t, job, step, &count);
    double bar = others ? sweep_stop_bar_of(r, t, others, count) : NAN;
    free(others);
    if (isnan(bar) || !sweep_stop_is_worse(r, mine, bar))
        return false;
    return asprintf(why, "stopped at step %lld: its %s of %.6g is worse than %.6g, %s %zu others",
                    (long long)step, r->metric, mine, bar,
                    r->rule == RULE_MEDIAN ? "the median of" : "the last that will go on of",
                    count) > 0;
}

/* The reason is stored first: whenever the daemon is killed, the trial's end is known for what it
 * is, and asked for again. */
static void sweep_stop_race(const struct race *r, struct store_trial *t, char *why)
{
    struct error e;
    bool is_new = !t->reason;
    char by[32];

    if (is_new) {
        t->reason = why;
        if (store_sweep_set_trial(r->m->store, r->sweep->id, t, &e))
            return;
        log_info("sweep %lld, job %lld: %s", (long long)r->sweep->id, (long long)t->job_id, why);
    }
    snprintf(by, sizeof by, "sweep %lld", (long long)r->sweep->id);
    job_cancel(r->m, t->job_id, by, &e); /* it may just have ended */
}

static void sweep_stop_race_judge(struct race *r)
{
    for (size_t i = 0; i < r->sweep->count; i++) {
        struct store_trial *t = &r->sweep->trials[i];
        struct store_job job;
        struct error ignored;
        char *why = NULL;
        if (strcmp(t->state, "submitted") != 0 ||
            store_job_get(r->m->store, t->job_id, &job, &ignored))
            continue;
        if ((job.state == JOB_RUNNING || job.state == JOB_EVALUATING) &&
            !store_job_cancel_asked(&job) && (t->reason || sweep_stop_has_lost(r, t, &job, &why)))
            sweep_stop_race(r, t, why);
        store_job_clear(&job);
    }
}

static int sweep_stop_losers(struct job_manager *m, struct store_sweep *sweep, const json_t *d,
                             struct error *e)
{
    struct race race = {.m = m, .sweep = sweep};

    (void)e;
    sweep_stop_read_race(&race, d);
    if (race.rule != RULE_NONE)
        sweep_stop_race_judge(&race);
    return 0;
}

void sweeps_stop_losers(struct job_manager *m)
{
    sweeps_visit_running(m, sweep_stop_losers);
}
