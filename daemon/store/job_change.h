/* State changes of jobs, and changes users make to waiting jobs. */
#pragma once

#include <stdint.h>

#include "common/job/job_state.h"
#include "daemon/store/store.h"

/* Sets started_at on the first "starting" and finished_at at the end. A change to the same state
 * only updates the reason. Durable. ERR_CONFLICT: the transition is not allowed. */
int store_job_set_state(struct store *s, int64_t id, const struct store_state_change *change,
                        struct error *e);

/* Durable. ERR_CONFLICT: the job is no longer queued, or is in Slurm's queue. */
int store_job_cancel_waiting(struct store *s, int64_t id, const char *reason, const char *by,
                             double now, struct error *e);

/* Requests the cancellation of an active job without changing its state: an event names the user,
 * and the attempt is never requeued. Durable. ERR_CONFLICT: the attempt is no longer active. */
int store_job_ask_cancel(struct store *s, int64_t id, int64_t attempt, const char *by, double now,
                         struct error *e);

struct store_waiting_change {
    enum { STORE_HOLD, STORE_RELEASE, STORE_PRIORITY } what;
    int64_t priority;
    double now;
    const char *by; /* as in store_state_change */
};
/* Holds, releases or reprioritises a queued job. A held job stays queued, is in no
 * STORE_QUEUE_ORDER list, begins no attempt, and its held time does not count as waiting. Durable.
 * ERR_CONFLICT: it is not queued here, or nothing would change. */
int store_job_change_waiting(struct store *s, int64_t id, const struct store_waiting_change *change,
                             struct error *e);

int store_job_set_disk(struct store *s, int64_t id, int64_t bytes, struct error *e);

struct sql;

int store_job_state_now(struct sql *c, int64_t id, enum job_state *state, struct error *e);
/* Does the same as store_job_set_state in the caller's transaction. The end of a job changes those
 * that wait for it (the key after): when it has succeeded they may start once they wait for no
 * other; otherwise they, and those that wait for them, are cancelled. */
int store_state_apply(struct sql *c, int64_t id, const struct store_state_change *change,
                      struct error *e);
/* ERR_CONFLICT: cancellation was requested. */
int store_check_not_cancelled(struct sql *c, int64_t id, struct error *e);
/* Describes which jobs a queued job waits for; "": none. */
#define STORE_WAITS_BYTES 1100 /* 64 ids of 13 digits */
int store_waits_for(struct sql *c, int64_t id, char reason[STORE_WAITS_BYTES], struct error *e);
int store_job_to_end_of_queue(struct sql *c, int64_t id, double now, struct error *e);
/* ERR_CONFLICT: the job is held. */
int store_check_not_held(struct sql *c, int64_t id, struct error *e);
