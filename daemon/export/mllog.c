#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/job_state.h"
#include "common/json.h"
#include "daemon/export/mllog.h"
#include "daemon/store/event.h"
#include "daemon/store/metric.h"

#define BENCHMARK  "resnet"
#define EPOCHS_MAX 10000
#define NOISE      1e-6 /* in epochs: events have nine digits */

enum kind { POINT, START, END };
static const char *const kinds[] = {
    [POINT] = "POINT_IN_TIME", [START] = "INTERVAL_START", [END] = "INTERVAL_END"};

struct line {
    double t;
    size_t order; /* among lines of the same time */
    char *text;
};

struct eval {
    int64_t step;
    double epoch, t, seconds;
    json_t *top1;
};

struct mllog {
    struct store *store;
    const struct store_job *job;
    const json_t *spec, *plan;
    struct line *lines;
    size_t count, capacity;
    struct eval *evals;
    size_t eval_count, eval_room;
    double starting;                     /* start of the newest attempt */
    double started, run_start, run_stop; /* 0: not yet */
    double ttt_seconds;                  /* NAN: unknown */
    bool ended;                          /* the workers reached the end of the run */
    bool success;                        /* with the target accuracy */
    struct error *e;
    int status;
};

/* Takes ownership of value and metadata, which may be NULL. */
static void mllog_put(struct mllog *m, double t, enum kind kind, const char *key, json_t *value,
                      json_t *metadata, int line)
{
    json_t *about = json_pack("{s:s, s:i}", "file", __FILE__, "lineno", line);

    if (metadata)
        json_object_update(about, metadata);
    json_decref(metadata);
    json_t *json = json_pack("{s:s, s:I, s:s, s:s, s:o, s:o}", "namespace", "", "time_ms",
                             (json_int_t)llround(t * 1e3), "event_type", kinds[kind], "key", key,
                             "value", value ? value : json_null(), "metadata", about);
    char *text = must_alloc(json_dumps(json, JSON_REAL_PRECISION(12)));
    size_t at = m->count;

    json_decref(json);
    array_add(m->lines, m->count, m->capacity) = (struct line){t, at, text};
}
#define PUT(m, t, kind, key, value, metadata) mllog_put(m, t, kind, key, value, metadata, __LINE__)

static int mllog_by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static json_t *mllog_lookup(const json_t *object, const char *path)
{
    char word[64];
    const json_t *at = object;

    for (const char *from = path; at && *from; from += strcspn(from, "."), from += *from == '.') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(from, "."), from);
        at = json_object_get(at, word);
    }
    return at ? json_incref((json_t *)at) : NULL;
}

static double mllog_number_in(const json_t *object, const char *path)
{
    json_t *value = mllog_lookup(object, path);
    double number = json_is_number(value) ? json_number_value(value) : NAN;

    json_decref(value);
    return number;
}

/* MLPerf keys of optimizer settings, for example sgd_opt_momentum and opt_adam_beta_1. */
static const struct {
    const char *of; /* values of optimizer.name that have this key; NULL: all */
    const char *key;
    bool of_plan;
    const char *path;
} optimizer_settings[] = {
    {NULL,              "opt_base_learning_rate",          true,  "peak_lr"               },
    {NULL,              "opt_end_learning_rate",           false, "lr.end"                },
    {NULL,              "opt_learning_rate_warmup_epochs", false, "lr.warmup_epochs"      },
    {" sgd sgdw lars ", "opt_momentum",                    false, "optimizer.momentum"    },
    {" adam adamw ",    "opt_adam_beta_1",                 false, "optimizer.beta1"       },
    {" adam adamw ",    "opt_adam_beta_2",                 false, "optimizer.beta2"       },
    {" adam adamw ",    "opt_adam_epsilon",                false, "optimizer.eps"         },
    {NULL,              "opt_weight_decay",                false, "optimizer.weight_decay"},
};

/* Only for poly; excludes warm-up. */
static void mllog_put_decay(struct mllog *m, double t, const char *prefix)
{
    json_t *decay = mllog_lookup(m->spec, "lr.decay");
    const char *name = json_is_string(decay) ? json_string_value(decay) : "";
    bool poly = strcmp(name, "poly") == 0, step = strcmp(name, "step") == 0;
    double steps =
        mllog_number_in(m->plan, "train_steps") - mllog_number_in(m->plan, "warmup_steps");
    char key[80];

    json_decref(decay);
    if (step)
        PUT(m, t, POINT, "opt_learning_rate_decay_boundary_epochs",
            mllog_lookup(m->spec, "lr.milestones"), NULL);
    if (!poly)
        return;
    snprintf(key, sizeof key, "%sopt_learning_rate_decay_poly_power", prefix);
    PUT(m, t, POINT, key, mllog_lookup(m->spec, "lr.power"), NULL);
    snprintf(key, sizeof key, "%sopt_learning_rate_decay_steps", prefix);
    PUT(m, t, POINT, key, isnan(steps) ? NULL : json_integer((json_int_t)fmax(steps, 0)), NULL);
}

static void mllog_put_optimizer(struct mllog *m, double t)
{
    json_t *value = mllog_lookup(m->spec, "optimizer.name");
    const char *name = json_is_string(value) ? json_string_value(value) : "sgd";
    bool lars = strcmp(name, "lars") == 0;
    const char *prefix = lars ? "lars_" : strcmp(name, "sgd") == 0 ? "sgd_" : "";
    char key[80], word[32];

    snprintf(word, sizeof word, " %.20s ", name);
    PUT(m, t, POINT, "opt_name", value, NULL);
    if (lars)
        PUT(m, t, POINT, "lars_epsilon", json_integer(0), NULL);
    for (size_t i = 0; i < sizeof optimizer_settings / sizeof optimizer_settings[0]; i++) {
        if (optimizer_settings[i].of && !strstr(optimizer_settings[i].of, word))
            continue;
        snprintf(key, sizeof key, "%s%s", prefix, optimizer_settings[i].key);
        PUT(m, t, POINT, key,
            mllog_lookup(optimizer_settings[i].of_plan ? m->plan : m->spec,
                         optimizer_settings[i].path),
            NULL);
    }
    if (strcmp(prefix, "sgd_") == 0) /* of sgd, MLPerf wants this key without the prefix */
        PUT(m, t, POINT, "opt_learning_rate_warmup_epochs",
            mllog_lookup(m->spec, "lr.warmup_epochs"), NULL);
    mllog_put_decay(m, t, prefix);
}

static json_t *mllog_labels(const struct store_job *job)
{
    json_t *tags = job->tags ? json_loads(job->tags, 0, NULL) : NULL;

    return json_pack("{s:s?, s:o, s:s?}", "name", job->name, "tags", tags ? tags : json_array(),
                     "note", job->note);
}

static void mllog_put_settings(struct mllog *m, double t)
{
    PUT(m, t, POINT, "submission_benchmark", json_string(BENCHMARK), mllog_labels(m->job));
    PUT(m, t, POINT, "submission_org", json_string("traind"), NULL);
    PUT(m, t, POINT, "submission_division", json_string("open"), NULL);
    PUT(m, t, POINT, "submission_status", json_string("research"), NULL);
    PUT(m, t, POINT, "submission_platform",
        json_sprintf("%lldx CPU", (long long)mllog_number_in(m->spec, "cluster.nodes")), NULL);
    PUT(m, t, POINT, "seed", mllog_lookup(m->spec, "seed"), NULL);
    PUT(m, t, POINT, "global_batch_size", mllog_lookup(m->plan, "global_batch"), NULL);
    PUT(m, t, POINT, "gradient_accumulation_steps", mllog_lookup(m->spec, "accumulate_steps"),
        NULL);
    PUT(m, t, POINT, "train_samples", mllog_lookup(m->plan, "train_images"), NULL);
    PUT(m, t, POINT, "eval_samples", mllog_lookup(m->plan, "eval_images"), NULL);
    PUT(m, t, POINT, "model_bn_span", mllog_lookup(m->spec, "batch_per_worker"), NULL);
    mllog_put_optimizer(m, t);
}

static void mllog_take_back_run_stop(struct mllog *m)
{
    m->run_stop = 0;
    m->ended = m->success = false;
}

static void mllog_take_state(struct mllog *m, const json_t *body, double t)
{
    enum job_state state = job_state_of(json_get_text(body, "state", ""));

    if (state == JOB_QUEUED || state == JOB_STARTING)
        mllog_take_back_run_stop(m);
    if (state != JOB_STARTING)
        return;
    m->starting = t;
    if (m->started == 0)
        m->started = t;
}

/* Time continues for a resumed run, which evaluates again after its checkpoint. An attempt without
 * a checkpoint starts the run from the beginning. */
static void mllog_take_run_start(struct mllog *m, const json_t *body, double t)
{
    json_int_t step = json_get_integer(body, "resumed_step", 0);

    mllog_take_back_run_stop(m);
    while (m->eval_count && m->evals[m->eval_count - 1].step > step)
        json_decref(m->evals[--m->eval_count].top1);
    if (m->run_start > 0 && step > 0)
        return;
    m->run_start = t;
    m->started = m->starting;
}

static void mllog_take_eval(struct mllog *m, const json_t *body, double t)
{
    array_add(m->evals, m->eval_count, m->eval_room) = (struct eval){
        .step = json_get_integer(body, "step", 0),
        .epoch = json_get_number(body, "epoch", 0),
        .t = t,
        .seconds = json_get_number(body, "seconds", 0),
        .top1 = mllog_lookup(body, "top1"),
    };
}

static void mllog_take_run_stop(struct mllog *m, const json_t *body, double t)
{
    m->run_stop = t;
    m->ttt_seconds = mllog_number_in(body, "ttt_seconds");
    m->ended = strcmp(json_get_text(body, "status", ""), "success") == 0;
    m->success = m->ended && !json_is_false(json_object_get(body, "target_reached"));
}

static bool mllog_add_event(void *context, const struct store_event_row *row)
{
    struct mllog *m = context;
    json_t *body = json_loads(row->body, 0, NULL);

    if (strcmp(row->type, "state") == 0)
        mllog_take_state(m, body, row->t);
    else if (strcmp(row->type, "run_start") == 0)
        mllog_take_run_start(m, body, row->t);
    else if (strcmp(row->type, "eval") == 0)
        mllog_take_eval(m, body, row->t);
    else if (strcmp(row->type, "run_stop") == 0)
        mllog_take_run_stop(m, body, row->t);
    json_decref(body);
    return m->status == 0;
}

/* Returns the end of the first evaluation that met the target, or of the last one; 0: none. */
static double mllog_decided_at(const struct mllog *m)
{
    double target = mllog_number_in(m->spec, "eval.target_top1");

    for (size_t i = 0; i < m->eval_count; i++)
        if (json_number_value(m->evals[i].top1) >= target)
            return m->evals[i].t;
    return m->eval_count ? m->evals[m->eval_count - 1].t : 0;
}

/* Writes run_stop after the time to train since run_start, or at the end of an aborted run. As
 * clocks differ, its time is kept between the deciding evaluation and the workers' end. Training
 * after the target stays in the log: MLPerf's checker requires everything after run_start and
 * exactly one run_stop, and counts epochs up to it. */
static void mllog_put_run_stop(struct mllog *m)
{
    double t = m->run_stop;

    if (t == 0 && job_state_is_final(m->job->state))
        t = m->job->finished_at;
    else if (t > 0 && isfinite(m->ttt_seconds))
        t = fmax(fmin(m->run_start + m->ttt_seconds, t), mllog_decided_at(m));
    if (t > 0)
        PUT(m, fmax(t, m->run_start), END, "run_stop", NULL,
            json_pack("{s:s}", "status", m->success ? "success" : "aborted"));
}

struct place {
    int64_t step; /* 0: none */
    double epoch, t;
};

static void mllog_keep_place(void *context, const struct store_metric_part *part)
{
    *(struct place *)context = (struct place){part->step, part->epoch, part->t};
}

/* Finds the first step from here on. Steps after the job's own were rolled back. */
static int mllog_find_step(struct mllog *m, int64_t from, struct place *place)
{
    *place = (struct place){0};
    int status = store_metric_each(m->store, m->job->id, from, 1, mllog_keep_place, place, m->e);

    if (place->step > m->job->step)
        *place = (struct place){0};
    return status;
}

/* Finds the last step of epoch n by doubling strides and bisection over stored steps: the plan
 * describes only the newest attempt, and epochs may end within a step. */
static int mllog_find_epoch_end(struct mllog *m, int64_t from, int64_t n, struct place *end)
{
    int64_t low = from, high = m->job->step + 1, stride = 1;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (middle > low + stride)
            middle = low + stride;
        stride *= 2;
        int status = mllog_find_step(m, middle, end);
        if (status)
            return status;
        if (end->step == 0 || end->epoch >= (double)n - NOISE)
            high = middle;
        else
            low = middle + 1;
    }
    return mllog_find_step(m, low, end);
}

static void mllog_put_epoch(struct mllog *m, enum kind kind, int64_t number, double t)
{
    PUT(m, t, kind, kind == START ? "epoch_start" : "epoch_stop", NULL,
        json_pack("{s:I}", "epoch_num", (json_int_t)number));
}

/* The last partial epoch ends with a complete run; otherwise it stays open. */
static int mllog_put_last_epoch(struct mllog *m, int64_t number, int64_t first, double begin)
{
    struct place last;
    int status = mllog_find_step(m, first, &last);

    if (status || last.step == 0)
        return status;
    mllog_put_epoch(m, START, number, begin);
    if (!m->ended)
        return 0;
    status = mllog_find_step(m, m->job->step, &last);
    mllog_put_epoch(m, END, number, fmax(last.t, begin));
    return status;
}

static int mllog_put_epochs(struct mllog *m)
{
    double begin = m->run_start;
    struct place end = {0};
    int64_t first = 1;

    for (int64_t n = 1; n <= EPOCHS_MAX; n++) {
        int status = mllog_find_epoch_end(m, first, n, &end);
        if (status || end.step == 0)
            return status ? status : mllog_put_last_epoch(m, n, first, begin);
        mllog_put_epoch(m, START, n, begin);
        begin = fmax(end.t, begin);
        mllog_put_epoch(m, END, n, begin);
        first = end.step + 1;
    }
    return 0;
}

static int mllog_number_eval(struct mllog *m, const struct eval *eval, json_int_t *number)
{
    double whole = floor(eval->epoch + NOISE);
    struct place before = {0};
    int status = eval->step > 1 ? mllog_find_step(m, eval->step - 1, &before) : 0;
    bool ends_it = whole >= 1 && before.epoch < whole - NOISE;

    *number = (json_int_t)(ends_it ? whole : ceil(eval->epoch - NOISE));
    return status;
}

static int mllog_put_evals(struct mllog *m)
{
    for (size_t i = 0; i < m->eval_count; i++) {
        const struct eval *eval = &m->evals[i];
        json_int_t number;
        int status = mllog_number_eval(m, eval, &number);
        if (status)
            return status;
        PUT(m, eval->t - fmax(eval->seconds, 0), START, "eval_start", NULL,
            json_pack("{s:I}", "epoch_num", number));
        PUT(m, eval->t, POINT, "eval_accuracy", json_incref(eval->top1),
            json_pack("{s:I}", "epoch_num", number));
        PUT(m, eval->t, END, "eval_stop", NULL, json_pack("{s:I}", "epoch_num", number));
    }
    return 0;
}

static int mllog_collect(struct mllog *m)
{
    struct store_event_range range = {.job_id = m->job->id, .without_steps = true};
    int status = store_event_each(m->store, &range, mllog_add_event, m, m->e);

    if (status || m->status || m->started == 0)
        return status ? status : m->status;
    PUT(m, m->started, POINT, "cache_clear", json_true(), NULL);
    PUT(m, m->started, START, "init_start", NULL, NULL);
    mllog_put_settings(m, m->started);
    if (m->run_start == 0)
        return m->status;
    PUT(m, m->run_start, END, "init_stop", NULL, NULL);
    PUT(m, m->run_start, START, "run_start", NULL, NULL);
    status = mllog_put_epochs(m);
    if (!status)
        status = mllog_put_evals(m);
    mllog_put_run_stop(m);
    return status ? status : m->status;
}

static void mllog_clear(struct mllog *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->lines[i].text);
    free(m->lines);
    for (size_t i = 0; i < m->eval_count; i++)
        json_decref(m->evals[i].top1);
    free(m->evals);
}

int export_mllog(struct store *store, const struct store_job *job, FILE *out, struct error *e)
{
    struct mllog m = {.store = store,
                      .job = job,
                      .spec = store_job_spec(job),
                      .plan = store_job_plan(job),
                      .e = e,
                      .ttt_seconds = NAN};

    int status = mllog_collect(&m);
    if (status == 0 && m.count) /* a job that never ran has none */
        qsort(m.lines, m.count, sizeof *m.lines, mllog_by_time);
    for (size_t i = 0; status == 0 && i < m.count; i++)
        fprintf(out, ":::MLLOG %s\n", m.lines[i].text);
    mllog_clear(&m);
    return status;
}
