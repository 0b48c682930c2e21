/*
 * A job that is planned again and put back into the queue, to continue from its newest checkpoint.
 * With other workers its document and plan are replaced, and an event keeps the old and the new
 * numbers.
 */
#pragma once

#include "daemon/job/job_manager_internal.h"
#include "daemon/job/resume_point.h"

/* Zero-initialise, fill job; free with job_replan_clear. */
struct job_replan {
    struct store_job job;
    struct resume_point at;
    struct job_spec *spec;
    struct plan *plan;
    json_t *numbers;
    char *spec_text, *plan_text;
    int64_t last_step; /* of the run, as steps are numbered in it */
};

void job_replan_clear(struct job_replan *r);

/* changes: as of job_resume. Problems of them go into *problems. */
int job_replan_prepare(struct job_manager *m, const json_t *changes, struct job_replan *r,
                       struct problems *problems, struct error *e);

/* keeps_place: it is queued already, and keeps its place. */
int job_replan_store(struct job_manager *m, const struct job_replan *r, bool keeps_place,
                     const char *reason, const char *by, struct error *e);

/* A queued job that has become too large for this node continues with fewer workers. */
int job_replan_for_slots(struct job_manager *m, int64_t id, struct error *e);

/* A queued job whose last attempt missed hosts continues without them if it has a checkpoint and
 * some are left; otherwise it stays as it is, as they may come back. */
void job_replan_without_hosts(struct job_manager *m, int64_t id, const char *attempt_dir);
