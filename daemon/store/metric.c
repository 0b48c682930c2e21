#include "daemon/store/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

#define LEVELS     7 /* the last has a row per 2 million steps */
#define LEVEL_BITS 3 /* 8 buckets are merged into one */
#define STEPS                                                                                      \
    "select step, epoch, t, loss, lr, images_per_sec, step_ms, data_ms, forward_ms, backward_ms, " \
    "comm_ms, optim_ms, grad_norm, slowest_rank, top1 from step_metric where " STORE_OF_JOB

static void metric_place_at(struct store_metric_part *p, int64_t step, double epoch, double t)
{
    p->step = step;
    p->epoch = epoch;
    p->t = t;
}

static void metric_merge(struct store_metric_sum *into, const struct store_metric_sum *from)
{
    if (from->count == 0)
        return;
    into->min = into->count && into->min < from->min ? into->min : from->min;
    into->max = into->count && into->max > from->max ? into->max : from->max;
    into->sum += from->sum;
    into->count += from->count;
}

void store_metric_fold(struct store_metric_part *into, const struct store_metric_part *part)
{
    metric_place_at(into, part->step, part->epoch, part->t);
    into->rows += part->rows;
    for (int i = 0; event_metric_at((size_t)i); i++)
        metric_merge(&into->of[i], &part->of[i]);
}

void store_metric_to_middle(struct store_metric_part *part, struct store_metric_part *before)
{
    struct store_metric_part last = *part;
    int64_t span = part->step - before->step, steps = part->rows / 2;
    double back = span > 0 ? (double)steps / (double)span : 0;

    metric_place_at(part, part->step - steps, part->epoch - back * (part->epoch - before->epoch),
                    part->t - back * (part->t - before->t));
    *before = last;
}

static void metric_read_step(sqlite3_stmt *row, struct store_metric_part *p)
{
    *p = (struct store_metric_part){0};
    metric_place_at(p, sqlite3_column_int64(row, 0), sql_double(row, 1),
                    sqlite3_column_double(row, 2));
    p->rows = 1;
    for (int i = 0; event_metric_at((size_t)i); i++) {
        double v = sql_double(row, 3 + i);
        if (isfinite(v))
            p->of[i] = (struct store_metric_sum){1, v, v, v};
    }
}

static void metric_read_bucket(sqlite3_stmt *row, struct store_metric_part *p)
{
    *p = (struct store_metric_part){0};
    metric_place_at(p, sqlite3_column_int64(row, 1), sql_double(row, 2),
                    sqlite3_column_double(row, 3));
    p->rows = sqlite3_column_int64(row, 0);
    size_t bytes = (size_t)sqlite3_column_bytes(row, 4);
    memcpy(p->of, sqlite3_column_blob(row, 4), bytes < sizeof p->of ? bytes : sizeof p->of);
}

/* Visits steps (level 0) or buckets in [from, to), which are multiples of the bucket size. */
static int metric_bucket_each(struct sql *c, int64_t job_id, int level, int64_t from, int64_t to,
                              store_metric_visit *visit, void *context, struct error *e)
{
    struct store_metric_part part;
    int shift = level * LEVEL_BITS;
    sqlite3_stmt *row =
        level == 0
            ? sql_query(c, e, STEPS " and step >= ?2 and step < ?3 order by step", "iii", job_id,
                        from, to)
            : sql_query(c, e,
                        "select rows, step, epoch, t, metrics from metric_bucket "
                        "where " STORE_OF_JOB " and level = ?2 and bucket >= ?3 and bucket < ?4 "
                        "order by bucket",
                        "iiii", job_id, (int64_t)level, from >> shift, to >> shift);
    int status;

    while ((status = sql_row(c, row, e)) > 0) {
        if (level == 0)
            metric_read_step(row, &part);
        else
            metric_read_bucket(row, &part);
        visit(context, &part);
    }
    return status;
}

int store_metric_each(struct store *s, int64_t job_id, int64_t from_step, int64_t limit,
                      store_metric_visit *visit, void *context, struct error *e)
{
    struct store_metric_part part;
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e, STEPS " and step >= ?2 order by step limit ?3", "iii",
                                  job_id, from_step, limit);
    int status;

    while ((status = sql_row(c, row, e)) > 0) {
        metric_read_step(row, &part);
        visit(context, &part);
    }
    sql_read_end(s, c);
    return status;
}

struct writer {
    struct sql *c;
    int64_t job_id, bucket;
    int level, status;
    struct store_metric_part part;
    struct error *e;
};

static void metric_write_bucket(struct writer *w)
{
    int metrics = 0;

    if (w->status || w->part.rows == 0)
        return;
    while (event_metric_at((size_t)metrics))
        metrics++;
    w->status = sql_run(
        w->c, w->e, NULL,
        "insert or replace into metric_bucket (job_id, level, bucket, rows, step, epoch, "
        "t, metrics) values (?, ?, ?, ?, ?, ?, ?, ?)",
        "iiiiiddb", w->job_id, (int64_t)w->level, w->bucket, w->part.rows, w->part.step,
        w->part.epoch, w->part.t, w->part.of, (int64_t)metrics * (int64_t)sizeof w->part.of[0]);
    w->part = (struct store_metric_part){0};
}

static void metric_add_part(void *context, const struct store_metric_part *part)
{
    struct writer *w = context;
    int64_t bucket = part->step >> (w->level * LEVEL_BITS);

    if (bucket != w->bucket)
        metric_write_bucket(w);
    w->bucket = bucket;
    store_metric_fold(&w->part, part);
}

int store_buckets_update(struct sql *c, int64_t job_id, int64_t first_step, int64_t last_step,
                         struct error *e)
{
    for (int level = 1; level <= LEVELS; level++) {
        struct writer w = {.c = c, .job_id = job_id, .level = level, .bucket = -1, .e = e};
        int64_t size = (int64_t)1 << (level * LEVEL_BITS);
        int status = metric_bucket_each(c, job_id, level - 1, first_step / size * size,
                                        (last_step / size + 1) * size, metric_add_part, &w, e);
        if (status == 0) {
            metric_write_bucket(&w);
            status = w.status;
        }
        if (status)
            return status;
    }
    return 0;
}

static int metric_fill_one(struct sql *c, int64_t job_id, struct error *e)
{
    int64_t first, last;
    int status = sql_one(c, e, "select min(step), max(step) from step_metric where job_id = ?",
                         "i:ii", job_id, &first, &last);

    if (status > 0)
        status = store_buckets_update(c, job_id, first, last, e);
    return status
               ? status
               : sql_run(c, e, NULL, "delete from metric_unfilled where job_id = ?", "i", job_id);
}

int store_buckets_fill(struct store *s, struct error *e)
{
    for (int64_t filled = 0;; filled++) {
        struct sql *c = sql_write_begin(s, false, e);
        if (!c)
            return -(int)e->code;
        int64_t id;
        int found = sql_one(c, e, "select job_id from metric_unfilled limit 1", ":i", &id);
        if (found > 0 && filled == 0)
            log_info("store: building coarser series of earlier jobs (once)");
        int status = sql_write_end(s, c, found > 0 ? metric_fill_one(c, id, e) : found, e);
        if (status || found == 0)
            return status;
    }
}

/* Covers the range with as few parts as possible up to this level, with finer ones at both ends. */
static int metric_cover(struct sql *c, int64_t job_id, int level, int64_t from, int64_t to,
                        store_metric_visit *visit, void *context, struct error *e)
{
    int64_t size = (int64_t)1 << (level * LEVEL_BITS);
    int64_t begin = (from + size - 1) / size * size, end = to / size * size;

    if (from >= to)
        return 0;
    if (level == 0)
        return metric_bucket_each(c, job_id, 0, from, to, visit, context, e);
    if (begin >= end)
        return metric_cover(c, job_id, level - 1, from, to, visit, context, e);
    int status = metric_cover(c, job_id, level - 1, from, begin, visit, context, e);
    if (status == 0)
        status = metric_bucket_each(c, job_id, level, begin, end, visit, context, e);
    return status ? status : metric_cover(c, job_id, level - 1, end, to, visit, context, e);
}

int store_metric_parts(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                       int64_t parts, store_metric_visit *visit, void *context, struct error *e)
{
    int level = 0;
    struct sql *c = sql_read_begin(s);

    while (level < LEVELS && (to_step - from_step) >> ((level + 1) * LEVEL_BITS) >= parts)
        level++;
    int status = metric_cover(c, job_id, level, from_step, to_step, visit, context, e);
    sql_read_end(s, c);
    return status;
}

int store_metric_ends(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                      int64_t max, struct store_metric_ends *ends, struct error *e)
{
    *ends = (struct store_metric_ends){0};
    return once_get(
        s, e,
        "select (select count(*) from (select 1 from step_metric where " STORE_OF_JOB
        " and step >= ?2 and step <= ?3 limit ?4 + 1)), "
        "(select min(step) from step_metric where " STORE_OF_JOB " and step >= ?2 and step <= ?3), "
        "(select max(step) from step_metric where " STORE_OF_JOB " and step >= ?2 and step <= ?3)",
        "iiii:iii", job_id, from_step, to_step, max, &ends->rows, &ends->first_step,
        &ends->last_step);
}

/* Returns 1 if there is one, 0 if not. */
static int metric_first_step(struct sql *c, int64_t job_id, int64_t from, int64_t to, int64_t *step,
                             double *t, struct error *e)
{
    return sql_one(c, e,
                   "select step, t from step_metric where " STORE_OF_JOB
                   " and step >= ?2 and step < ?3 order by step limit 1",
                   "iii:id", job_id, from, to, step, t);
}

int store_metric_ends_since(struct store *s, int64_t job_id, double t,
                            struct store_metric_ends *ends, struct error *e)
{
    int status = store_metric_ends(s, job_id, 0, INT64_MAX, 1, ends, e), found = 1;
    int64_t low = ends->first_step, high = ends->last_step + 1, at;
    double then;

    if (status || ends->rows == 0)
        return status;
    ends->rows = 0;
    struct sql *c = sql_read_begin(s);
    while (low < high && found >= 0) {
        int64_t middle = low + (high - low) / 2;
        found = metric_first_step(c, job_id, middle, high, &at, &then, e);
        if (found > 0 && then < t) {
            low = at + 1;
            continue;
        }
        high = middle;
        if (found > 0) {
            ends->first_step = at;
            ends->rows = 1;
        }
    }
    sql_read_end(s, c);
    return found < 0 ? found : 0;
}

/* With ema, only the events have the accuracy of the weights without averaging. */
int store_eval_list(struct store *s, int64_t job_id, json_t **evals, struct error *e)
{
    char *text = NULL;
    int status = once_get(
        s, e,
        "select json_group_array(json_patch(json_object('step', step, 'epoch', epoch, 'top1', "
        "top1, 'top5', top5, 'loss', loss, 'calibration_error', calibration_error, 'images', "
        "images, 't', t), json_object('raw_top1', body ->> 'raw_top1', 'raw_top5', "
        "body ->> 'raw_top5', 'raw_loss', body ->> 'raw_loss'))) from (select eval.*, body from "
        "eval left join (select max(id), cast(body ->> 'step' as integer) as at, body from "
        "job_event where "
        "job_id = ?1 and type = 'eval' group by at) on at = step where job_id = ?1 order by step)",
        "i:s", job_id, &text);

    *evals = status ? NULL : json_loads(text, 0, NULL);
    free(text);
    return status;
}

int store_jobs_trained_since(struct store *s, double since, int64_t max, struct store_trained *jobs,
                             size_t *count, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e,
                                  "select id, global_batch from "
                                  "(select * from job order by id desc limit ?) "
                                  "where started_at is not null and global_batch > 0 "
                                  "and coalesce(imported_attempts, -1) < attempt "
                                  "and step > 0 and (finished_at is null or finished_at >= ?)",
                                  "id", max, since);
    int status;

    *count = 0;
    while ((status = sql_row(c, row, e)) > 0)
        jobs[(*count)++] =
            (struct store_trained){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    sql_read_end(s, c);
    return status;
}

int store_steps_speed(struct store *s, int64_t job_id, int64_t attempt, double *images_per_sec,
                      struct error *e)
{
    return once_get(
        s, e,
        "select sum(images_per_sec * step_ms) / sum(step_ms) from step_metric where " STORE_OF_JOB
        " and step <= (select step from job where id = ?1) and images_per_sec > 0 and step_ms > 0 "
        "and not exists (select 1 from job_event where job_id = ?1 and attempt = ?2 "
        "and type = 'run_stop' and json_extract(body, '$.images_per_sec') is not null)",
        "ii:d", job_id, attempt, images_per_sec);
}
