/* What the fast reader took of a step's line, beside what jansson reads: for its tests and its fuzz
 * target. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ingest/fast_step_parser.h"

static inline bool same_step_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static inline bool same_step_own(const char *line, size_t own, json_t *body)
{
    size_t bytes = strlen(line) + 2;
    char *text = malloc(bytes);
    json_t *fields = NULL;

    if (text && own < bytes) {
        snprintf(text, bytes, "{%s", line + own);
        fields = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    }
    json_object_del(body, "seq");
    json_object_del(body, "t");
    json_object_del(body, "type");
    bool same = json_equal(fields, body);
    json_decref(fields);
    free(text);
    return same;
}

static inline const char *same_step_differs(const json_t *body, const struct store_event *event)
{
    const char *type = json_string_value(json_object_get(body, "type"));
    struct store_step step;

    if (event->seq != json_integer_value(json_object_get(body, "seq")))
        return "seq";
    if (!same_step_number(event->t, json_number_value(json_object_get(body, "t"))))
        return "t";
    if (event->type != EVENT_STEP || !type || strcmp(type, "step") != 0)
        return "type";
    store_step_of(body, &step);
    if (event->step.step != step.step)
        return "step";
    if (!same_step_number(event->step.epoch, step.epoch))
        return "epoch";
    for (size_t i = 0; i < EVENT_METRICS_MAX; i++)
        if (!same_step_number(event->step.metrics[i], step.metrics[i]))
            return event_metric_at(i) ? event_metric_at(i)->name : "a place without a metric";
    return NULL;
}

/* The field that jansson reads otherwise; NULL: none. */
static inline const char *same_step_wrong(const char *line, const struct store_event *event,
                                          size_t own)
{
    json_t *body = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *wrong = json_is_object(body) ? same_step_differs(body, event) : "the line: no JSON";

    if (!wrong && !same_step_own(line, own, body))
        wrong = "a field of its own";
    json_decref(body);
    return wrong;
}
