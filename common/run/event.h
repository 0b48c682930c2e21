/*
 * Events: the lines of events.jsonl, {"seq": 1, "t": 1789.25, "type": "step", ...}. The worker's
 * rank 0 writes them, the daemon stores them; this table names the types and which fields of a
 * step are metrics. Contract: schema/api/events.json.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum event_type {
    EVENT_RUN_START,
    EVENT_GRADIENTS,
    EVENT_STEP,
    EVENT_EVAL_PROGRESS,
    EVENT_EVAL,
    EVENT_CHECKPOINT,
    EVENT_STRAGGLER,
    EVENT_WARNING,
    EVENT_ENERGY,
    EVENT_RUN_STOP,
    EVENT_FAILED,
    EVENT_TYPE_COUNT /* also: a name that is none of these */
};

const char *event_type_name(enum event_type type);
enum event_type event_type_of(const char *name);

/* Types as the API filters by them: the daemon's own, as "state", then the worker's above; NULL
 * behind the last. */
const char *event_kind_at(size_t i);

/* The numeric fields of a step event that become metric series. */
#define EVENT_METRICS_MAX 16 /* at least as many as there are */
struct event_metric {
    const char *name; /* "images_per_sec" */
    const char *unit; /* "images/s" */
    const char *help;
};
const struct event_metric *event_metric_at(size_t i); /* NULL behind the last */

/* Steps above it are in no series: no run has so many, and what is made of them would overflow. */
#define EVENT_STEP_MAX ((int64_t)1000 * 1000 * 1000 * 1000)
