/*
 * Writes single events, inside the caller's transaction. The body of an event is stored without
 * "seq", "t" and "type", which have columns of their own.
 */
#pragma once

#include "daemon/store/sql.h"

/* *inserted: 0 if the event with this seq is stored already, or the job no longer exists. seq
 * negative: an event of the daemon itself. fields: JSON text. */
int event_insert_text(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const char *fields, int *inserted, struct error *e);
int event_insert_body(struct sql *c, int64_t job_id, int64_t attempt, int64_t seq, double t,
                      const char *type, const json_t *body, int *inserted, struct error *e);

/* Passes an event to the callback of store_on_fact. */
int event_tell(struct sql *c, const struct store_fact *of, struct error *e);

/* The event of a state change. */
int store_event_state(struct sql *c, int64_t job_id, const struct store_state_change *change,
                      struct error *e);

/* An event of the daemon itself; ERR_NOT_FOUND. */
int store_event_insert(struct sql *c, int64_t job_id, int64_t attempt, const char *type,
                       const json_t *fields, double now, struct error *e);

/* The same of the job's newest attempt. */
int store_event_of_attempt(struct sql *c, int64_t job_id, const char *type, const json_t *fields,
                           double now, struct error *e);
