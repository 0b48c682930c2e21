/* Sweeps over job keys (schema/api/sweeps.json). Each rung of a halving trains anew, with a
 * schedule of its own length. A trial's job is submitted under a key of its own, so a restarted
 * daemon submits none twice. */
#pragma once

#include "common/plan/plan.h"
#include "daemon/job/job.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/sweep.h"

#define SWEEPS_RUNNING_MAX 256
#define SWEEP_TEXT_MAX     ((size_t)16 << 20) /* of the documents of all points, in bytes */

struct sweep_permit {
    void (*check)(const struct job_spec *spec, const void *context, struct problems *problems);
    const void *context;
};

struct sweep_new {
    const json_t *document;
    struct sweep_permit permit;
    struct store_key key; /* and by whom */
};

/* Checks a document: what is wrong goes into *problems, with 0 and *id 0. Durable when it returns.
 * *existed: the key came before, and *id is that sweep. Thread-safe. */
int sweep_create(struct job_manager *m, const struct sweep_new *new, struct problems *problems,
                 int64_t *id, bool *existed, struct error *e);

/* Ends a sweep and cancels its jobs. by: the requester; NULL: unnamed. ERR_NOT_FOUND, ERR_CONFLICT.
 * Thread-safe. */
int sweep_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* Called in the job manager's loop. Returns the seconds until the next call; INFINITY: none. */
double sweeps_go_on(struct job_manager *m);

/* Likewise, once a second: early stopping. */
void sweeps_stop_losers(struct job_manager *m);

/* With the table of results, the best first (the highest rung, then the metric). */
json_t *sweep_to_json(const struct store_sweep *sweep);

/* Fills *sweep with the trials of the first rung. Clear it with store_sweep_clear. */
void sweep_make(struct job_manager *m, const json_t *document, const struct sweep_new *new,
                struct store_sweep *sweep, struct problems *problems);

/* The plan of a trial if submitted now, or NULL and *e. *inputs may have prices, and a speed if
 * none was measured. */
struct plan *sweep_plan_trial(struct job_manager *m, const struct store_sweep *sweep,
                              struct job_spec *spec, struct plan_inputs *inputs,
                              struct problems *problems, struct error *e);
