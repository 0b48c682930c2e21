/* Stores batches of lines of events.jsonl. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/job_change.h"

/* NAN: not present. */
struct store_step {
    int64_t step; /* -1: none */
    double epoch;
    double metrics[EVENT_METRICS_MAX]; /* ordered as event_metric_at */
};
void store_step_clear(struct store_step *step);
void store_step_of(const json_t *body, struct store_step *step);

/* A parsed line of events.jsonl. */
struct store_event {
    int64_t seq;
    double t;
    enum event_type type;
    const json_t *body;     /* the whole object; NULL for a step with `own` */
    const char *own;        /* its text without seq, t and type; NULL: derived from body */
    struct store_step step; /* for step events */
};

/* The lines in bytes [from, to) of an attempt's events.jsonl, stored in one transaction together
 * with the state change they cause. Lines whose seq is already stored are skipped. ERR_CONFLICT:
 * from is not the stored position. */
struct store_batch {
    int64_t job_id, attempt;
    int64_t from_bytes, to_bytes;
    const struct store_event *events;
    size_t count;
    const struct store_state_change *change; /* NULL: none */
};
int store_ingest(struct store *s, const struct store_batch *batch, struct error *e);

/* Gets the position up to which events have been stored; 0: none. */
int store_ingest_position(struct store *s, int64_t job_id, int64_t attempt, int64_t *bytes,
                          struct error *e);

/* Gets the highest stored seq; 0: none. */
int store_ingest_seq(struct store *s, int64_t job_id, int64_t attempt, int64_t *seq,
                     struct error *e);
