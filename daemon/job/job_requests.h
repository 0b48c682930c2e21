/*
 * What users ask for. All functions are thread-safe: they write to the store and wake the loop.
 * by: who asked, for the job's events and the log; NULL: unnamed.
 */
#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/problem.h"

struct job_manager;

/* The document has been checked. */
struct job_submission {
    const struct job_spec *spec;
    const struct plan *plan;
    const char *idempotency_key; /* NULL: none */
    const char *request_digest;  /* of the body as sent; NULL: none */
    const char *submitted_by;    /* NULL: unnamed */
};

/* Queues a job: makes its row, with document and plan, durable when it returns. Its run directory
 * is made when it starts. *existed (may be NULL): the key was seen before, *id is the earlier job.
 * ERR_INVALID: it can never fit on this node; why is added to *problems too. ERR_CONFLICT: the same
 * key with another body. */
int job_submit(struct job_manager *m, const struct job_submission *submission,
               struct problems *problems, int64_t *id, bool *existed, struct error *e);

/* Cancels a job. A queued one is cancelled when this returns; the workers of an active one are
 * asked to stop, after the grace period by SIGTERM, then SIGKILL, and its state changes when all
 * its processes are gone. ERR_NOT_FOUND; ERR_CONFLICT: it has ended already (its state is named).
 */
int job_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* Puts a failed or cancelled job back into the queue, to continue from its newest checkpoint.
 * changes (NULL: none) is an object with keys of cluster, restart and priority; with other workers
 * the job is planned again. *answer gets {"step", "before", "after", "steps_left"}, the numbers of
 * the old and of the new plan, as a new reference. ERR_NOT_FOUND; ERR_CONFLICT: it runs, has
 * succeeded, or has no checkpoint; ERR_INVALID: the changes (*problems lists them if it has any).
 */
int job_resume(struct job_manager *m, int64_t id, const json_t *changes, const char *by,
               struct problems *problems, json_t **answer, struct error *e);

/* Holds a waiting job: it stays in the queue and is passed over until job_release; the time it is
 * held does not count as waiting. job_set_priority gives it another priority (-1000 to 1000).
 * ERR_NOT_FOUND; ERR_CONFLICT: it does not wait, waits in Slurm's queue, or is held (is not held)
 * already. */
int job_hold(struct job_manager *m, int64_t id, const char *by, struct error *e);
int job_release(struct job_manager *m, int64_t id, const char *by, struct error *e);
int job_set_priority(struct job_manager *m, int64_t id, int64_t priority, const char *by,
                     struct error *e);

/* Changes name, note, tags and star of a job in any state; change is checked, as in
 * daemon/store/job_label.h. ERR_NOT_FOUND; ERR_INVALID: too many tags. */
int job_label(struct job_manager *m, int64_t id, const json_t *change, const char *by,
              struct error *e);
