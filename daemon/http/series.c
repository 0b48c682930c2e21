#include "daemon/http/series.h"

#include <math.h>
#include <stdlib.h>

#include "common/event.h"

#define METRICS_MAX 16

struct bucket {
    int64_t step; /* of its last row */
    double epoch, t;
    int64_t rows;
    struct {
        double sum, min, max;
        int64_t count; /* of numbers; some rows may have none */
    } of[METRICS_MAX];
};

struct series {
    unsigned wanted;
    int64_t rows, points, seen;
    struct bucket *buckets; /* (points) */
};

struct series *series_create(unsigned wanted, int64_t rows, int64_t points)
{
    struct series *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->wanted = wanted;
    s->rows = rows;
    s->points = rows < points ? rows : points;
    s->buckets = calloc((size_t)s->points + 1, sizeof *s->buckets);
    if (!s->buckets) {
        free(s);
        return NULL;
    }
    return s;
}

/* Row i of n rows over p buckets; the first and the last row have one each. */
static int64_t bucket_of(int64_t i, int64_t n, int64_t p)
{
    if (n == p || i == 0)
        return i;
    if (i == n - 1)
        return p - 1;
    if (p == 2)
        return -1; /* no room between them */
    return 1 + (int64_t)((double)(i - 1) * (double)(p - 2) / (double)(n - 2));
}

void series_add(void *context, int64_t step, double epoch, double t, const double *values)
{
    struct series *s = context;

    if (s->seen >= s->rows)
        return;
    int64_t place = bucket_of(s->seen++, s->rows, s->points);
    if (place < 0)
        return;
    struct bucket *b = &s->buckets[place];
    b->step = step;
    b->epoch = epoch;
    b->t = t;
    b->rows++;
    for (int i = 0; event_metric_at((size_t)i); i++) {
        double v = values[i];
        if (!isfinite(v))
            continue;
        b->of[i].min = b->of[i].count && b->of[i].min < v ? b->of[i].min : v;
        b->of[i].max = b->of[i].count && b->of[i].max > v ? b->of[i].max : v;
        b->of[i].sum += v;
        b->of[i].count++;
    }
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

enum part { PART_MEAN, PART_MIN, PART_MAX };

static json_t *column(const struct series *s, int metric, enum part part)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < s->points && s->buckets[i].rows; i++) {
        const struct bucket *b = &s->buckets[i];
        int64_t n = b->of[metric].count;
        double value = n == 0             ? NAN
                       : part == PART_MIN ? b->of[metric].min
                       : part == PART_MAX ? b->of[metric].max
                       : n == 1           ? b->of[metric].sum
                                          : b->of[metric].sum / (double)n;
        json_array_append_new(list, number(value));
    }
    return list;
}

static json_t *columns(const struct series *s, json_t *into, enum part part)
{
    for (int i = 0; event_metric_at((size_t)i); i++)
        if (s->wanted & 1u << i)
            json_object_set_new(into, event_metric_at((size_t)i)->name, column(s, i, part));
    return into;
}

json_t *series_to_json(const struct series *s)
{
    json_t *step = json_array(), *epoch = json_array(), *t = json_array();
    bool averaged = s->rows > s->points;

    for (int64_t i = 0; i < s->points && s->buckets[i].rows; i++) {
        json_array_append_new(step, json_integer(s->buckets[i].step));
        json_array_append_new(epoch, number(s->buckets[i].epoch));
        json_array_append_new(t, number(s->buckets[i].t));
    }
    json_t *json = json_pack("{s:I, s:I, s:b, s:o, s:o, s:o}", "rows", (json_int_t)s->rows,
                             "points", (json_int_t)json_array_size(step), "downsampled", averaged,
                             "step", step, "epoch", epoch, "t", t);
    columns(s, json, PART_MEAN);
    if (averaged) {
        json_object_set_new(json, "min", columns(s, json_object(), PART_MIN));
        json_object_set_new(json, "max", columns(s, json_object(), PART_MAX));
    }
    return json;
}

int64_t series_next(const struct series *s)
{
    int64_t i = s->points;

    while (i > 0 && s->buckets[i - 1].rows == 0)
        i--;
    return i > 0 ? s->buckets[i - 1].step + 1 : 0;
}

void series_destroy(struct series *s)
{
    if (s)
        free(s->buckets);
    free(s);
}
