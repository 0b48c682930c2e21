#include "daemon/http/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/event.h"

struct series {
    struct series_shape shape;
    int64_t used, rows;              /* points begun (exact); rows in all */
    struct store_metric_part *parts; /* (points); rows 0: none there */
};

struct series *series_create(const struct series_shape *shape)
{
    struct series *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->shape = *shape;
    s->parts = calloc((size_t)shape->points + 1, sizeof *s->parts);
    if (!s->parts) {
        free(s);
        return NULL;
    }
    return s;
}

/* The first and the last step have a point each. */
static int64_t place_of(struct series *s, int64_t step)
{
    const struct series_shape *shape = &s->shape;
    int64_t points = shape->points, span = shape->last_step - shape->first_step - 1;

    if (shape->exact)
        return s->used++;
    if (step <= shape->first_step)
        return 0;
    if (step >= shape->last_step)
        return points - 1;
    return points == 2 ? -1 /* no room between them */
                       : 1 + (step - shape->first_step - 1) * (points - 2) / span;
}

void series_add(void *context, const struct store_metric_part *part)
{
    struct series *s = context;
    int64_t place = s->shape.exact && s->used >= s->shape.points ? -1 : place_of(s, part->step);

    if (place >= 0 || !s->shape.exact)
        s->rows += part->rows;
    if (place >= 0)
        store_metric_fold(&s->parts[place], part);
}

/* ---------------------------------------------------------------- values */

enum value { VALUE_MEAN, VALUE_MIN, VALUE_MAX };

static double value_of(const struct store_metric_part *p, int metric, enum value which)
{
    const struct store_metric_sum *of = &p->of[metric];

    if (of->count == 0)
        return NAN;
    switch (which) {
    case VALUE_MIN:
        return of->min;
    case VALUE_MAX:
        return of->max;
    default:
        return of->count > 1 ? of->sum / of->count : of->sum;
    }
}

static const struct store_metric_part *next_part(const struct series *s, int64_t *i)
{
    while (*i < s->shape.points)
        if (s->parts[(*i)++].rows)
            return &s->parts[*i - 1];
    return NULL;
}

/* ---------------------------------------------------------------- JSON */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *columns(const struct series *s, json_t *into, enum value which)
{
    for (int m = 0; event_metric_at((size_t)m); m++) {
        if (!(s->shape.wanted & 1u << m))
            continue;
        json_t *list = json_array();
        const struct store_metric_part *p;
        for (int64_t i = 0; (p = next_part(s, &i));)
            json_array_append_new(list, number(value_of(p, m, which)));
        json_object_set_new(into, event_metric_at((size_t)m)->name, list);
    }
    return into;
}

json_t *series_to_json(const struct series *s)
{
    json_t *step = json_array(), *epoch = json_array(), *t = json_array();
    const struct store_metric_part *p;

    for (int64_t i = 0; (p = next_part(s, &i));) {
        json_array_append_new(step, json_integer(p->step));
        json_array_append_new(epoch, number(p->epoch));
        json_array_append_new(t, number(p->t));
    }
    json_t *json = json_pack("{s:I, s:I, s:b, s:o, s:o, s:o}", "rows", (json_int_t)s->rows,
                             "points", (json_int_t)json_array_size(step), "downsampled",
                             !s->shape.exact, "step", step, "epoch", epoch, "t", t);
    columns(s, json, VALUE_MEAN);
    if (!s->shape.exact) {
        json_object_set_new(json, "min", columns(s, json_object(), VALUE_MIN));
        json_object_set_new(json, "max", columns(s, json_object(), VALUE_MAX));
    }
    return json;
}

/* ---------------------------------------------------------------- CSV */

static void put(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.12g", value);
}

static void put_names(const struct series *s, FILE *out)
{
    fputs("step,epoch,t", out);
    for (int m = 0; event_metric_at((size_t)m); m++) {
        const char *name = event_metric_at((size_t)m)->name;
        if (!(s->shape.wanted & 1u << m))
            continue;
        fprintf(out, ",%s", name);
        if (!s->shape.exact)
            fprintf(out, ",%s_min,%s_max", name, name);
    }
    fputs("\r\n", out);
}

static void put_line(const struct series *s, const struct store_metric_part *p, FILE *out)
{
    fprintf(out, "%lld", (long long)p->step);
    put(out, p->epoch);
    fprintf(out, ",%.6f", p->t);
    for (int m = 0; event_metric_at((size_t)m); m++) {
        if (!(s->shape.wanted & 1u << m))
            continue;
        put(out, value_of(p, m, VALUE_MEAN));
        if (!s->shape.exact) {
            put(out, value_of(p, m, VALUE_MIN));
            put(out, value_of(p, m, VALUE_MAX));
        }
    }
    fputs("\r\n", out);
}

char *series_to_csv(const struct series *s, size_t *bytes)
{
    const struct store_metric_part *p;
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);

    if (!out)
        return NULL;
    put_names(s, out);
    for (int64_t i = 0; (p = next_part(s, &i));)
        put_line(s, p, out);
    fclose(out);
    return text;
}

/* ---------------------------------------------------------------- */

int64_t series_next(const struct series *s)
{
    return s->used > 0 ? s->parts[s->used - 1].step + 1 : 0;
}

void series_destroy(struct series *s)
{
    if (s)
        free(s->parts);
    free(s);
}
