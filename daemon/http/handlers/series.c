#include "daemon/http/handlers/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/run/attempt.h"

struct series {
    struct series_shape shape;
    int64_t used, rows;              /* points begun (if exact); total rows */
    struct store_metric_part *parts; /* (points); rows 0: no data */
    struct store_metric_part before; /* when down-sampling, the place of the first row */
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

static int64_t series_slot(struct series *s, const struct store_metric_part *part)
{
    const struct series_shape *shape = &s->shape;
    int64_t steps = shape->last_step - shape->first_step + 1;
    int64_t at = part->step - part->rows / 2 - shape->first_step;

    if (shape->exact)
        return s->used++;
    if (s->rows == 0)
        s->before = *part;
    return at < 0 ? 0 : at < steps ? at * shape->points / steps : shape->points - 1;
}

void series_add(void *context, const struct store_metric_part *part)
{
    struct series *s = context;

    if (s->shape.exact && s->used >= s->shape.points)
        return;
    store_metric_fold(&s->parts[series_slot(s, part)], part);
    s->rows += part->rows;
}

void series_end(struct series *s)
{
    for (int64_t i = 0; !s->shape.exact && i < s->shape.points; i++)
        if (s->parts[i].rows)
            store_metric_to_middle(&s->parts[i], &s->before);
}

enum value { VALUE_MEAN, VALUE_MIN, VALUE_MAX };

static double series_part_value(const struct store_metric_part *p, int metric, enum value which)
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

static const struct store_metric_part *series_next_part(const struct series *s, int64_t *i)
{
    while (*i < s->shape.points)
        if (s->parts[(*i)++].rows)
            return &s->parts[*i - 1];
    return NULL;
}

static void series_add_column(struct json_text *t, const struct series *s, int metric,
                              enum value which)
{
    const struct store_metric_part *p;

    json_text_open(t, event_metric_at((size_t)metric)->name, '[');
    for (int64_t i = 0; (p = series_next_part(s, &i));) {
        if (which == VALUE_MEAN && p->of[metric].count > 1)
            json_text_rounded(t, NULL, series_part_value(p, metric, which));
        else
            json_text_real(t, NULL, series_part_value(p, metric, which));
    }
    json_text_close(t, ']');
}

static void series_add_columns(struct json_text *t, const struct series *s, enum value which)
{
    for (int m = 0; event_metric_at((size_t)m); m++)
        if (s->shape.wanted & 1u << m)
            series_add_column(t, s, m, which);
}

static void series_slots(struct json_text *t, const struct series *s,
                         const struct images_by_step *seen)
{
    const struct store_metric_part *p;

    json_text_open(t, "step", '[');
    for (int64_t i = 0; (p = series_next_part(s, &i));)
        json_text_integer(t, NULL, p->step);
    json_text_close(t, ']');
    json_text_open(t, "images", '[');
    for (int64_t i = 0; (p = series_next_part(s, &i));) {
        int64_t images = images_by_step_at(seen, p->step);
        json_text_known(t, NULL, images >= 0, images);
    }
    json_text_close(t, ']');
    json_text_open(t, "epoch", '[');
    for (int64_t i = 0; (p = series_next_part(s, &i));)
        json_text_real(t, NULL, p->epoch);
    json_text_close(t, ']');
    json_text_open(t, "t", '[');
    for (int64_t i = 0; (p = series_next_part(s, &i));)
        json_text_real(t, NULL, p->t);
    json_text_close(t, ']');
}

static int64_t series_count_points(const struct series *s)
{
    int64_t points = 0;

    for (int64_t i = 0; series_next_part(s, &i);)
        points++;
    return points;
}

void series_members(struct json_text *t, const struct series *s, const struct images_by_step *seen)
{
    json_text_integer(t, "rows", s->rows);
    json_text_integer(t, "points", series_count_points(s));
    json_text_raw(t, "downsampled", s->shape.exact ? "false" : "true");
    series_slots(t, s, seen);
    series_add_columns(t, s, VALUE_MEAN);
    if (s->shape.exact)
        return;
    json_text_open(t, "min", '{');
    series_add_columns(t, s, VALUE_MIN);
    json_text_close(t, '}');
    json_text_open(t, "max", '{');
    series_add_columns(t, s, VALUE_MAX);
    json_text_close(t, '}');
}

static void series_print_number(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.12g", value);
}

static void series_print_images(FILE *out, int64_t images)
{
    fputc(',', out);
    if (images >= 0)
        fprintf(out, "%lld", (long long)images);
}

static void series_put_names(const struct series *s, FILE *out)
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
    fputs(s->shape.images ? ",images\r\n" : "\r\n", out);
}

static void series_put_line(const struct series *s, const struct images_by_step *seen,
                            const struct store_metric_part *p, FILE *out)
{
    fprintf(out, "%lld", (long long)p->step);
    series_print_number(out, p->epoch);
    fprintf(out, ",%.6f", p->t);
    for (int m = 0; event_metric_at((size_t)m); m++) {
        if (!(s->shape.wanted & 1u << m))
            continue;
        series_print_number(out, series_part_value(p, m, VALUE_MEAN));
        if (!s->shape.exact) {
            series_print_number(out, series_part_value(p, m, VALUE_MIN));
            series_print_number(out, series_part_value(p, m, VALUE_MAX));
        }
    }
    if (s->shape.images)
        series_print_images(out, images_by_step_at(seen, p->step));
    fputs("\r\n", out);
}

char *series_to_csv(const struct series *s, const struct images_by_step *seen, size_t *bytes)
{
    const struct store_metric_part *p;
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);

    if (!out)
        return NULL;
    series_put_names(s, out);
    for (int64_t i = 0; (p = series_next_part(s, &i));)
        series_put_line(s, seen, p, out);
    fclose(out);
    return text;
}

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
