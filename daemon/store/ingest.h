/* Batches of events.jsonl, stored. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/job_change.h"

/* The numbers of a step; NAN: not there. */
struct store_step {
    int64_t step; /* -1: it has none, and is in no series */
    double epoch;
    double metrics[EVENT_METRICS_MAX]; /* in the order of event_metric_at */
};
void store_step_clear(struct store_step *step);
void store_step_of(const json_t *body, struct store_step *step);

/* One line of events.jsonl, parsed. */
struct store_event {
    int64_t seq;
    double t;
    enum event_type type;
    const json_t
        *body;       /* the whole object, with seq, t and type; of a step NULL where own is set */
    const char *own; /* its text without these, where the caller has it; NULL: made from body */
    struct store_step step; /* of a step */
};

/* A batch of lines of one attempt, bytes [from, to) of its events.jsonl, in one transaction: the
 * events (a seq that is there already is left alone), their rows in step_metric and eval, the job's
 * progress and results, the new position, and the change of state if one is given and the state
 * differs. from must be the stored position, else ERR_CONFLICT and nothing is written. */
struct store_batch {
    int64_t job_id, attempt;
    int64_t from_bytes, to_bytes;
    const struct store_event *events;
    size_t count;
    const struct store_state_change *change; /* NULL: none */
};
int store_ingest(struct store *s, const struct store_batch *batch, struct error *e);

/* Where to read on: 0 for an attempt never read. */
int store_ingest_position(struct store *s, int64_t job_id, int64_t attempt, int64_t *bytes,
                          struct error *e);

/* The highest seq of an attempt's events; 0: it has none. */
int store_ingest_seq(struct store *s, int64_t job_id, int64_t attempt, int64_t *seq,
                     struct error *e);
