/* Changes of a job's state, and what people change about a job that waits. */
#pragma once

#include <stdint.h>

#include "common/job/job_state.h"
#include "daemon/store/store.h"

/* Sets started_at at the first "starting" and finished_at at an end. ERR_CONFLICT where the stored
 * state does not lead there; the same state only changes the reason. Durable. */
int store_job_set_state(struct store *s, int64_t id, const struct store_state_change *change,
                        struct error *e);

/* ERR_CONFLICT: no longer queued outside Slurm. Durable. */
int store_job_cancel_waiting(struct store *s, int64_t id, const char *reason, const char *by,
                             double now, struct error *e);

/* The state stays, an event names who asked, and the attempt is never queued again. ERR_CONFLICT:
 * no longer under way. Durable. */
int store_job_ask_cancel(struct store *s, int64_t id, int64_t attempt, const char *by, double now,
                         struct error *e);

struct store_waiting_change {
    enum { STORE_HOLD, STORE_RELEASE, STORE_PRIORITY } what;
    int64_t priority;
    double now;
    const char *by; /* as in store_state_change */
};
/* A held job stays queued, is in no STORE_QUEUE_ORDER list, begins no attempt, and its held time
 * does not count as waiting. ERR_CONFLICT: not queued here, or nothing to change. Durable. */
int store_job_change_waiting(struct store *s, int64_t id, const struct store_waiting_change *change,
                             struct error *e);

int store_job_set_disk(struct store *s, int64_t id, int64_t bytes, struct error *e);

struct sql;

int store_job_state_now(struct sql *c, int64_t id, enum job_state *state, struct error *e);
/* In the caller's transaction; as store_job_set_state. */
int store_state_apply(struct sql *c, int64_t id, const struct store_state_change *change,
                      struct error *e);
/* ERR_CONFLICT */
int store_check_not_cancelled(struct sql *c, int64_t id, struct error *e);
/* ERR_CONFLICT */
int store_check_not_held(struct sql *c, int64_t id, struct error *e);
