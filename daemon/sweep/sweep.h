/* Sweeps over job keys (schema/api/sweeps.json). In successive halving, a job of a higher rung
 * continues that of the rung before (sweep_continues). A trial's job is submitted with its own
 * idempotency key, so that a restarted daemon submits none twice. */
#pragma once

#include "common/plan/plan.h"
#include "daemon/job/job.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/sweep.h"

#define SWEEPS_RUNNING_MAX 256
#define SWEEP_TEXT_MAX     ((size_t)16 << 20) /* total bytes of the documents of all points */

struct sweep_permit {
    void (*check)(const struct job_spec *spec, const void *context, struct problems *problems);
    const void *context;
};

struct sweep_new {
    const json_t *document;
    struct sweep_permit permit;
    struct store_key key; /* includes the user */
};

/* Validates and stores a sweep. If the document is invalid, returns 0 with *problems and *id 0.
 * Durable on return. *existed: the key was used before, and *id is that sweep. Thread-safe. */
int sweep_create(struct job_manager *m, const struct sweep_new *new, struct problems *problems,
                 int64_t *id, bool *existed, struct error *e);

/* Ends a sweep and cancels its jobs. by: the requesting user; NULL: unnamed. ERR_NOT_FOUND,
 * ERR_CONFLICT. Thread-safe. */
int sweep_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* Advances all sweeps: submits jobs and evaluates results. Called in the job manager's loop.
 * Returns the seconds until the next call; INFINITY: none. */
double sweeps_go_on(struct job_manager *m);

/* Early stopping; called in the loop once a second. */
void sweeps_stop_losers(struct job_manager *m);

/* Includes the table of results, best first (by rung, highest first, then by metric). */
json_t *sweep_to_json(const struct store_sweep *sweep);

/* Fills *sweep with the trials of the first rung. Clear it with store_sweep_clear. */
void sweep_make(struct job_manager *m, const json_t *document, const struct sweep_new *new,
                struct store_sweep *sweep, struct problems *problems);

/* Plans a trial as if submitted now; returns NULL and *e on failure. *inputs may provide prices,
 * and a speed to use if none has been measured. */
struct plan *sweep_plan_trial(struct job_manager *m, const struct store_sweep *sweep,
                              struct job_spec *spec, struct plan_inputs *inputs,
                              struct problems *problems, struct error *e);
