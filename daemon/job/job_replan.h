/* Plans a job again and requeues it, to continue from its newest checkpoint. If the number of
 * workers changes, document and plan are replaced, and an event records the old and new numbers. */
#pragma once

#include "daemon/job/job_manager_internal.h"
#include "daemon/job/resume_point.h"

/* Zero-initialise it and set job; free it with job_replan_clear. */
struct job_replan {
    struct store_job job;
    struct resume_point at;
    char *wanted; /* to store, as in job_fields.h; NULL: none */
    struct job_spec *spec;
    struct plan *plan;
    json_t *numbers, *before; /* before: a part of them */
    char *spec_text, *plan_text;
    int64_t last_step; /* last step of the whole run */
};

void job_replan_clear(struct job_replan *r);

/* Validates changes (as for job_resume) and makes the new plan. Adds invalid changes to
 * *problems. */
int job_replan_prepare(struct job_manager *m, const json_t *changes, struct job_replan *r,
                       struct problems *problems, struct error *e);

/* keeps_place: the job is queued already and keeps its position. */
int job_replan_store(struct job_manager *m, const struct job_replan *r, bool keeps_place,
                     const char *reason, const char *by, struct error *e);

/* Continues a queued job that has become too large for this node with fewer workers. */
int job_replan_for_slots(struct job_manager *m, int64_t id, struct error *e);

/* Continues a queued job, whose last attempt lacked hosts, on the remaining ones, if it has a
 * checkpoint. Otherwise leaves it unchanged, because the hosts may return. */
void job_replan_without_hosts(struct job_manager *m, int64_t id, const char *attempt_dir);

/* Plans a job that has fewer nodes than it wants (store_job.wanted) with these changes of cluster.
 * stores: it is queued, and continues so; otherwise only checks whether that is possible. */
int job_replan_grow(struct job_manager *m, int64_t id, const json_t *changes, bool stores,
                    struct error *e);

/* Continues a queued job, whose last attempt was stopped for that, with the changes in
 * ATTEMPT_FLAG_GROW. Otherwise leaves it unchanged. */
void job_replan_with_hosts(struct job_manager *m, int64_t id, const char *attempt_dir);
