/* The events of jobs: rows of job_event, of the workers and of the daemon itself. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/store.h"

struct store_job;
struct store_state_change;

/* Ids rise in commit order: who has seen id n has seen all below. */
#define STORE_ALL_JOBS 0
struct store_event_range {
    int64_t job_id;     /* or STORE_ALL_JOBS */
    int64_t after;      /* ids above it */
    int64_t limit;      /* 0: none */
    bool without_steps; /* of one job */
    const char *types;  /* of one job: names separated by commas; NULL: all */
};
struct store_event_row {
    int64_t id, job_id, attempt;
    double t;
    const char *type, *body; /* a JSON object without id, t and type; valid during the visit */
};
/* false ends the walk */
typedef bool store_event_visit(void *context, const struct store_event_row *row);

/* Oldest first. visit must not call the store. */
int store_event_each(struct store *s, const struct store_event_range *range,
                     store_event_visit *visit, void *context, struct error *e);

/* A new object {"id", "job", "attempt", "t", "type", ...body}, or a new array of them. */
json_t *store_event_json(const struct store_event_row *row);
int store_event_list(struct store *s, const struct store_event_range *range, json_t **events,
                     struct error *e);

/* At most `most` step events, evenly spread over the ids, oldest first. */
int store_event_steps_spread(struct store *s, int64_t job_id, int64_t most,
                             store_event_visit *visit, void *context, struct error *e);

int store_event_newest(struct store *s, int64_t *id, struct error *e); /* 0: there are none */

/* Body of the event "gradients" of the newest attempt; NULL: none. */
int store_gradients_of(struct store *s, const struct store_job *job, char **body, struct error *e);

/* An event of the daemon itself. fields: a JSON object, or NULL. */
int store_event_add(struct store *s, int64_t job_id, int64_t attempt, const char *type,
                    const json_t *fields, double now, struct error *e);

/* In the caller's transaction. Bodies are stored without seq, t and type, which are columns. */

struct sql;

/* *inserted: 0 if this seq is stored already, or the job is gone. seq negative: the daemon's own.
 */
int event_insert_text(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const char *fields, int *inserted, struct error *e);
int event_insert_body(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const json_t *body, int *inserted, struct error *e);

/* Passes an event to the hook of store_on_fact. */
int event_call_hook(struct sql *c, const struct store_fact *of, struct error *e);

int store_event_state(struct sql *c, int64_t job_id, const struct store_state_change *change,
                      struct error *e);

/* ERR_NOT_FOUND */
int store_event_insert(struct sql *c, int64_t job_id, int64_t attempt, const char *type,
                       const json_t *fields, double now, struct error *e);

/* Of the job's newest attempt. */
int store_event_of_attempt(struct sql *c, int64_t job_id, const char *type, const json_t *fields,
                           double now, struct error *e);
