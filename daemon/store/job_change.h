/* Changes of a job's state, and what people change about a job that waits. */
#pragma once

#include <stdint.h>

#include "common/job/job_state.h"
#include "daemon/store/store.h"

/* A change of state with its words. Sets started_at at the first "starting" and finished_at at an
 * end. ERR_CONFLICT where the job's state (as in the database, not as the caller thinks) does not
 * lead there; the same state again only changes the reason. Durable. */
int store_job_set_state(struct store *s, int64_t id, const struct store_state_change *change,
                        struct error *e);

/* A job that waits, and has not been handed to Slurm, is cancelled. ERR_CONFLICT: it does not wait
 * any more. Durable. */
int store_job_cancel_waiting(struct store *s, int64_t id, const char *reason, const char *by,
                             double now, struct error *e);

/* The attempt that is under way is to be cancelled: the state stays, an event says who asked, and
 * the attempt is never queued again (ERR_CONFLICT). Durable. ERR_CONFLICT: it is not under way any
 * more. */
int store_job_ask_cancel(struct store *s, int64_t id, int64_t attempt, const char *by, double now,
                         struct error *e);

/* What people change about a job that waits. */
struct store_waiting_change {
    enum { STORE_HOLD, STORE_RELEASE, STORE_PRIORITY } what;
    int64_t priority;
    double now;
    const char *by; /* as in store_state_change */
};
/* A job that is held stays queued, is in no list of STORE_QUEUE_ORDER, and begins no attempt until
 * it is released; the time for which it is held does not count as waiting. It is held no more
 * once it is cancelled. ERR_CONFLICT: it does not wait here, or there is nothing to change. An
 * event says who asked. Durable. */
int store_job_change_waiting(struct store *s, int64_t id, const struct store_waiting_change *change,
                             struct error *e);

/* disk_bytes of a job. */
int store_job_set_disk(struct store *s, int64_t id, int64_t bytes, struct error *e);

struct sql;

int store_job_state_now(struct sql *c, int64_t id, enum job_state *state, struct error *e);
/* A state change inside the caller's transaction. */
int store_state_apply(struct sql *c, int64_t id, const struct store_state_change *change,
                      struct error *e);
/* ERR_CONFLICT: somebody has asked to cancel the newest attempt. */
int store_check_not_cancelled(struct sql *c, int64_t id, struct error *e);
/* ERR_CONFLICT: the job is held. */
int store_check_not_held(struct sql *c, int64_t id, struct error *e);
