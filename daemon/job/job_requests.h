/* Requests of users. All functions are thread-safe: they write to the store and wake the loop. by:
 * the requesting user, for the job's events and the log; NULL: unnamed. */
#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/problem.h"

struct job_manager;

/* A submission whose document has been validated. */
struct job_submission {
    const struct job_spec *spec;
    const struct plan *plan;
    const char *idempotency_key; /* NULL: none */
    const char *request_digest;  /* digest of the request body; NULL: none */
    const char *submitted_by;    /* NULL: unnamed */
};

/* Queues a job. Its row, document and plan are durable on return; its run directory is created when
 * it starts. Sets *existed (may be NULL) if the key was used before, and *id to that earlier job.
 * ERR_INVALID: it can never fit on this node, for the reasons added to *problems, or a job of the
 * key after has just ended without success. ERR_CONFLICT: the key was used with another body. */
int job_submit(struct job_manager *m, const struct job_submission *submission,
               struct problems *problems, int64_t *id, bool *existed, struct error *e);

/* Cancels a job. A queued job is cancelled on return. The workers of an active job are asked to
 * stop, after the grace period by SIGTERM, then SIGKILL; its state changes when all its processes
 * have ended. ERR_NOT_FOUND; ERR_CONFLICT: it has already ended (the error names its state). */
int job_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* Requeues a failed or cancelled job to continue from its newest checkpoint. changes (may be NULL)
 * is an object with keys of cluster, restart and priority; the job is planned again if its workers
 * change. *answer is set to a new reference to {"step", "before", "after", "steps_left"}, the
 * numbers of the old and the new plan. ERR_NOT_FOUND; ERR_CONFLICT: it is running, has succeeded,
 * or has no checkpoint; ERR_INVALID: a change is invalid (details in *problems). */
int job_resume(struct job_manager *m, int64_t id, const json_t *changes, const char *by,
               struct problems *problems, json_t **answer, struct error *e);

/* job_hold keeps a waiting job in the queue without starting it until job_release; the time on hold
 * does not count as waiting. job_set_priority accepts -1000 to 1000. ERR_NOT_FOUND; ERR_CONFLICT:
 * the job is not waiting, is in Slurm's queue, or is already held (job_release: is not held). */
int job_hold(struct job_manager *m, int64_t id, const char *by, struct error *e);
int job_release(struct job_manager *m, int64_t id, const char *by, struct error *e);
int job_set_priority(struct job_manager *m, int64_t id, int64_t priority, const char *by,
                     struct error *e);

/* Changes the name, note, tags and star of a job in any state. change must be validated, see
 * daemon/store/job_label.h. ERR_NOT_FOUND; ERR_INVALID: too many tags. */
int job_label(struct job_manager *m, int64_t id, const json_t *change, const char *by,
              struct error *e);
