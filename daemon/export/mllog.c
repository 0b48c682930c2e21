#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "daemon/export/export.h"

#define BENCHMARK  "resnet"
#define EPOCHS_MAX 10000

enum kind { POINT, START, END };
static const char *const kinds[] = {
    [POINT] = "POINT_IN_TIME", [START] = "INTERVAL_START", [END] = "INTERVAL_END"};

struct line {
    double t;
    size_t order; /* of lines of the same moment */
    char *text;
};

struct mllog {
    const struct store_job *job;
    json_t *spec, *plan;
    struct line *lines;
    size_t count, room;
    double started, run_start, run_stop; /* 0: not yet */
    bool success;
    struct error *e;
    int status;
};

/* ---------------------------------------------------------------- lines */

static bool mllog_grow(struct mllog *m)
{
    struct line *lines = array_grow(m->lines, m->count, &m->room, sizeof *lines);
    if (lines)
        m->lines = lines;
    return lines != NULL;
}

/* Takes over value (NULL: null) and metadata (NULL: none). */
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
    char *text = json ? json_dumps(json, JSON_REAL_PRECISION(12)) : NULL;
    json_decref(json);
    if (!text || !mllog_grow(m)) {
        free(text);
        m->status = error_set(m->e, ERR_NO_MEMORY, "no memory for the log");
        return;
    }
    m->lines[m->count] = (struct line){t, m->count, text};
    m->count++;
}
#define PUT(m, t, kind, key, value, metadata) mllog_put(m, t, kind, key, value, metadata, __LINE__)

static int by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* ---------------------------------------------------------------- the document */

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

static double number_in(const json_t *object, const char *path)
{
    json_t *value = mllog_lookup(object, path);
    double number = json_is_number(value) ? json_number_value(value) : NAN;

    json_decref(value);
    return number;
}

/* MLPerf's constants: sgd_opt_momentum, opt_adam_beta_1. */
static const struct {
    const char *of; /* optimisers, by optimizer.name; NULL: all */
    const char *key;
    bool of_plan;
    const char *path;
} optimizer_settings[] = {
    {NULL,           "opt_base_learning_rate",             true,  "peak_lr"               },
    {NULL,           "opt_end_learning_rate",              false, "lr.end"                },
    {NULL,           "opt_learning_rate_decay_poly_power", false, "lr.power"              },
    {NULL,           "opt_learning_rate_decay_steps",      true,  "train_steps"           },
    {NULL,           "opt_learning_rate_warmup_epochs",    false, "lr.warmup_epochs"      },
    {" sgd lars ",   "opt_momentum",                       false, "optimizer.momentum"    },
    {" adam adamw ", "opt_adam_beta_1",                    false, "optimizer.beta1"       },
    {" adam adamw ", "opt_adam_beta_2",                    false, "optimizer.beta2"       },
    {" adam adamw ", "opt_adam_epsilon",                   false, "optimizer.eps"         },
    {NULL,           "opt_weight_decay",                   false, "optimizer.weight_decay"},
};

static void put_optimizer(struct mllog *m, double t)
{
    json_t *value = mllog_lookup(m->spec, "optimizer.name");
    const char *name = json_is_string(value) ? json_string_value(value) : "sgd";
    bool lars = strcmp(name, "lars") == 0, prefixed = lars || strcmp(name, "sgd") == 0;
    char key[80], word[32];

    snprintf(word, sizeof word, " %.20s ", name);
    PUT(m, t, POINT, "opt_name", value, NULL);
    if (lars)
        PUT(m, t, POINT, "lars_epsilon", json_integer(0), NULL);
    for (size_t i = 0; i < sizeof optimizer_settings / sizeof optimizer_settings[0]; i++) {
        if (optimizer_settings[i].of && !strstr(optimizer_settings[i].of, word))
            continue;
        snprintf(key, sizeof key, "%s%s%s", prefixed ? name : "", prefixed ? "_" : "",
                 optimizer_settings[i].key);
        PUT(m, t, POINT, key,
            mllog_lookup(optimizer_settings[i].of_plan ? m->plan : m->spec,
                         optimizer_settings[i].path),
            NULL);
    }
}

/* What people wrote on the job, as it is now. */
static json_t *mllog_labels(const struct store_job *job)
{
    json_t *tags = job->tags ? json_loads(job->tags, 0, NULL) : NULL;

    return json_pack("{s:s?, s:o, s:s?}", "name", job->name, "tags", tags ? tags : json_array(),
                     "note", job->note);
}

static void put_settings(struct mllog *m, double t)
{
    PUT(m, t, POINT, "submission_benchmark", json_string(BENCHMARK), mllog_labels(m->job));
    PUT(m, t, POINT, "submission_org", json_string("traind"), NULL);
    PUT(m, t, POINT, "submission_division", json_string("open"), NULL);
    PUT(m, t, POINT, "submission_status", json_string("research"), NULL);
    PUT(m, t, POINT, "submission_platform",
        json_sprintf("%lldx CPU", (long long)number_in(m->spec, "cluster.nodes")), NULL);
    PUT(m, t, POINT, "seed", mllog_lookup(m->spec, "seed"), NULL);
    PUT(m, t, POINT, "global_batch_size", mllog_lookup(m->plan, "global_batch"), NULL);
    PUT(m, t, POINT, "gradient_accumulation_steps", mllog_lookup(m->spec, "accumulate_steps"),
        NULL);
    PUT(m, t, POINT, "train_samples", mllog_lookup(m->plan, "train_images"), NULL);
    PUT(m, t, POINT, "eval_samples", mllog_lookup(m->plan, "eval_images"), NULL);
    put_optimizer(m, t);
}

/* ---------------------------------------------------------------- the run */

static void take_eval(struct mllog *m, const json_t *body, double t)
{
    double epoch = number_in(body, "epoch"), seconds = number_in(body, "seconds");
    json_int_t number = (json_int_t)ceil(isnan(epoch) ? 0 : epoch - 1e-9);

    PUT(m, t - (seconds > 0 ? seconds : 0), START, "eval_start", NULL,
        json_pack("{s:I}", "epoch_num", number));
    PUT(m, t, POINT, "eval_accuracy", mllog_lookup(body, "top1"),
        json_pack("{s:I}", "epoch_num", number));
    PUT(m, t, END, "eval_stop", NULL, json_pack("{s:I}", "epoch_num", number));
}

static void take_run_stop(struct mllog *m, const json_t *body, double t)
{
    json_t *status = mllog_lookup(body, "status"), *reached = mllog_lookup(body, "target_reached");

    m->run_stop = t;
    m->success =
        status && strcmp(json_string_value(status), "success") == 0 && !json_is_false(reached);
    json_decref(status);
    json_decref(reached);
}

static bool mllog_add_event(void *context, const struct store_event_row *row)
{
    struct mllog *m = context;
    json_t *body = json_loads(row->body, 0, NULL);
    json_t *state = mllog_lookup(body, "state");

    if (strcmp(row->type, "state") == 0 && m->started == 0 && state &&
        strcmp(json_string_value(state), "starting") == 0)
        m->started = row->t;
    else if (strcmp(row->type, "run_start") == 0 && m->run_start == 0)
        m->run_start = row->t;
    else if (strcmp(row->type, "eval") == 0)
        take_eval(m, body, row->t);
    else if (strcmp(row->type, "run_stop") == 0)
        take_run_stop(m, body, row->t);
    json_decref(state);
    json_decref(body);
    return m->status == 0;
}

/* ---------------------------------------------------------------- epochs */

static void take_time(void *context, const struct store_metric_part *part)
{
    double *t = context;
    *t = part->t;
}

static void put_epoch(struct mllog *m, int64_t number, double begin, double end)
{
    PUT(m, begin, START, "epoch_start", NULL, json_pack("{s:I}", "epoch_num", (json_int_t)number));
    PUT(m, end, END, "epoch_stop", NULL, json_pack("{s:I}", "epoch_num", (json_int_t)number));
}

/* The last step of epoch n = 1, 2, ... */
static int64_t last_step_of(const json_t *plan, int64_t n)
{
    const json_t *phases = json_object_get(plan, "phases"), *phase, *own = NULL;
    size_t i;

    json_array_foreach (phases, i, phase)
        if (number_in(phase, "epoch") < (double)n)
            own = phase;
    if (!own)
        return n * (int64_t)number_in(plan, "steps_per_epoch");
    return (int64_t)(number_in(own, "step") +
                     ((double)n - number_in(own, "epoch")) * number_in(own, "steps_per_epoch"));
}

/* An epoch ends with its last step; the last one may be cut short. */
static int put_epochs(struct mllog *m, struct store *store, struct error *e)
{
    bool known = number_in(m->plan, "steps_per_epoch") >= 1;
    double begin = m->run_start;
    int64_t done = 0;

    for (int64_t n = 1; known && n <= EPOCHS_MAX && done < m->job->step; n++) {
        int64_t own = last_step_of(m->plan, n);
        int64_t last = own < m->job->step ? own : m->job->step;
        double end = 0;
        done = own;
        if (store_metric_each(store, m->job->id, last, 1, take_time, &end, e))
            return -(int)e->code;
        if (end >= begin) {
            put_epoch(m, n, begin, end);
            begin = end;
        }
    }
    return 0;
}

/* ---------------------------------------------------------------- all */

static int mllog_collect(struct mllog *m, struct store *store, struct error *e)
{
    struct store_event_range range = {.job_id = m->job->id, .without_steps = true};
    int status = store_event_each(store, &range, mllog_add_event, m, e);

    if (status || m->status || m->started == 0)
        return status ? status : m->status;
    PUT(m, m->started, POINT, "cache_clear", json_true(), NULL);
    PUT(m, m->started, START, "init_start", NULL, NULL);
    put_settings(m, m->started);
    if (m->run_start == 0)
        return m->status;
    PUT(m, m->run_start, END, "init_stop", NULL, NULL);
    PUT(m, m->run_start, START, "run_start", NULL, NULL);
    status = put_epochs(m, store, e);
    if (m->run_stop > 0)
        PUT(m, m->run_stop, END, "run_stop", NULL,
            json_pack("{s:s}", "status", m->success ? "success" : "aborted"));
    return status ? status : m->status;
}

static void mllog_clear(struct mllog *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->lines[i].text);
    free(m->lines);
    json_decref(m->spec);
    json_decref(m->plan);
}

int export_mllog(struct store *store, const struct store_job *job, FILE *out, struct error *e)
{
    struct mllog m = {.job = job, .e = e};

    m.spec = json_loads(job->spec, 0, NULL);
    m.plan = json_loads(job->plan, 0, NULL);
    int status = mllog_collect(&m, store, e);
    if (status == 0 && m.count) /* a job that never ran has none */
        qsort(m.lines, m.count, sizeof *m.lines, by_time);
    for (size_t i = 0; status == 0 && i < m.count; i++)
        fprintf(out, ":::MLLOG %s\n", m.lines[i].text);
    mllog_clear(&m);
    return status;
}
