/*
 * A job that is planned again and put back into the queue, to go on from its newest checkpoint.
 * With other workers its document and its plan are replaced, and the old and the new numbers stay
 * in an event.
 */
#pragma once

#include "daemon/job/job_manager_internal.h"
#include "daemon/job/resume_point.h"

/* What is to become of the job. Zero-initialise, fill job; free with again_clear. */
struct again {
    struct store_job job;
    struct resume_point at;
    struct job_spec *spec;
    struct plan *plan;
    json_t *numbers;
    char *spec_text, *plan_text;
    int64_t last_step; /* of the run, as steps are numbered in it */
};

void again_clear(struct again *a);

/* changes: as of job_resume. Problems of them go into *problems. */
int again_prepare(struct job_manager *m, const json_t *changes, struct again *a,
                  struct problems *problems, struct error *e);

/* keeps_place: it is queued already, and stays where it is. */
int again_store(struct job_manager *m, const struct again *a, bool keeps_place, const char *reason,
                const char *by, struct error *e);

/* A queued job that has become too large for this node goes on with fewer workers. */
int job_shrink(struct job_manager *m, int64_t id, struct error *e);

/* A queued job whose last attempt missed hosts goes on without them, if it has a checkpoint and
 * some are left; otherwise it stays as it is, as they may come back. */
void job_leave_hosts(struct job_manager *m, int64_t id, const char *attempt_dir);
