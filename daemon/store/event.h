/* Events of jobs, written by the workers or the daemon: rows of job_event. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/store.h"

struct store_job;
struct store_state_change;

/* Event ids increase in commit order: a reader that has seen id n has seen every smaller id. */
#define STORE_ALL_JOBS 0
struct store_event_range {
    int64_t job_id;     /* or STORE_ALL_JOBS */
    int64_t after;      /* only ids above this */
    int64_t limit;      /* 0: unlimited */
    bool without_steps; /* for a single job only */
    const char *types;  /* for a single job only: comma-separated names; NULL: all */
};
struct store_event_row {
    int64_t id, job_id, attempt;
    double t;
    const char *type,
        *body; /* body: a JSON object without id, t and type; valid only during the visit */
};
/* Returns false to stop the iteration. */
typedef bool store_event_visit(void *context, const struct store_event_row *row);

/* Visits events, oldest first. visit must not call the store. */
int store_event_each(struct store *s, const struct store_event_range *range,
                     store_event_visit *visit, void *context, struct error *e);

/* Returns a new object {"id", "job", "attempt", "t", "type", ...body}. */
json_t *store_event_json(const struct store_event_row *row);
int store_event_list(struct store *s, const struct store_event_range *range, json_t **events,
                     struct error *e);

/* Visits at most `max` step events, evenly spaced by id, oldest first. */
int store_event_steps_spread(struct store *s, int64_t job_id, int64_t max, store_event_visit *visit,
                             void *context, struct error *e);

int store_event_newest(struct store *s, int64_t *id, struct error *e); /* 0: none */

/* Gets the body of the newest attempt's "gradients" event; NULL if there is none. The caller frees
 * it. */
int store_gradients_of(struct store *s, const struct store_job *job, char **body, struct error *e);

/* Writes an event of the daemon itself. fields: a JSON object, or NULL. */
int store_event_add(struct store *s, int64_t job_id, int64_t attempt, const char *type,
                    const json_t *fields, double now, struct error *e);

/* The functions below run in the caller's transaction. Bodies are stored without seq, t and type,
 * which have their own columns. */

struct sql;

/* *inserted: 0 if this seq is already stored or the job is gone. A negative seq marks an event of
 * the daemon. */
int event_insert_text(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const char *fields, int *inserted, struct error *e);
int event_insert_body(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const json_t *body, int *inserted, struct error *e);

/* Passes an event to the hook set with store_on_fact. */
int event_call_hook(struct sql *c, const struct store_fact *of, struct error *e);

int store_event_state(struct sql *c, int64_t job_id, const struct store_state_change *change,
                      struct error *e);

/* ERR_NOT_FOUND: no such job. */
int store_event_insert(struct sql *c, int64_t job_id, int64_t attempt, const char *type,
                       const json_t *fields, double now, struct error *e);

/* Inserts an event of the job's newest attempt. */
int store_event_of_attempt(struct sql *c, int64_t job_id, const char *type, const json_t *fields,
                           double now, struct error *e);
