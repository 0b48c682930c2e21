#include "daemon/job/job_requests.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_replan.h"
#include "daemon/job/job_resources.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_label.h"

/* ---------------------------------------------------------------- submit */

int job_submit(struct job_manager *m, const struct job_submission *s, struct problems *problems,
               int64_t *id, bool *existed, struct error *e)
{
    /* Without this check the sweep would submit the job later and could only fail. */
    bool by_sweep = s->submitted_by && strncmp(s->submitted_by, "sweep ", 6) == 0;
    char key[PROBLEM_KEY_BYTES];
    bool before = false;

    assert_object(m, JOB_MANAGER_MAGIC);
    if (job_check_fits(m, s->spec, problems, e))
        return -(int)e->code;
    if (!problems->count)
        job_check_caps(m, s->spec, problems);
    if (problems->count) {
        const struct problem *first = &problems->items[0];
        return error_set(e, ERR_INVALID, "%s: %s", problem_key(first->pointer, key),
                         first->message);
    }
    char *spec = json_take_text(job_spec_to_json(s->spec));
    char *plan = json_take_text(plan_to_json(s->plan));
    struct store_job_new row = {
        .name = s->spec->name,
        .submitted_by = s->submitted_by,
        .tags = (const char *const *)s->spec->tags,
        .tag_count = s->spec->tag_count,
        .note = s->spec->note,
        .spec = spec,
        .plan = plan,
        .idempotency_key = s->idempotency_key,
        .request_digest = s->request_digest,
        .priority = s->spec->priority,
        .size = job_size(m, s->spec, s->plan),
        .max_queued = by_sweep ? 0 : job_manager_limits(m).max_queued_per_user,
        .reason = "just submitted",
        .now = clock_now(),
    };
    int status = store_job_insert(m->store, &row, id, &before, e);
    free(spec);
    free(plan);
    if (status)
        return status;
    if (existed)
        *existed = before;
    if (!before)
        log_info("job %lld: submitted by %s", (long long)*id, job_requester_name(s->submitted_by));
    job_manager_wake(m);
    return 0;
}

/* ---------------------------------------------------------------- cancel */

/* A cancellation is stored and also marked by a file in the attempt's folder, so that a daemon
 * killed in between or a batch script sees it. */
struct job_cancelling {
    struct job_manager *m;
    const struct store_job *job;
    const char *by;
};

static int job_mark_cancelled(struct job_manager *m, const struct store_job *job, struct error *e)
{
    char folder[PATH_MAX];
    int status = file_path(folder, e, "%s/attempt-%lld", job->run_dir, (long long)job->attempt);

    if (status)
        return status;
    pthread_mutex_lock(&m->files);
    status = run_dir_claim(m->store, job, e);
    if (!status)
        status = file_make_dirs(folder, e); /* the attempt may be about to start */
    pthread_mutex_unlock(&m->files);
    return status ? status : attempt_flag_write(folder, ATTEMPT_FLAG_CANCEL, e);
}

static int job_cancel_act(void *context, enum job_action action, struct error *e)
{
    const struct job_cancelling *c = context;
    const struct store_job *job = c->job;
    struct job_manager *m = c->m;
    int status = 0;

    if (action == DO_STORE_CANCELLED) {
        const char *reason = job->attempt > 0 ? "cancelled on request while it waited to resume"
                                              : "cancelled on request before it started";
        status = store_job_cancel_waiting(m->store, job->id, reason, c->by, clock_now(), e);
        if (!status)
            log_info("job %lld: cancelled by %s", (long long)job->id, job_requester_name(c->by));
    } else if (action == DO_STORE_CANCEL_REQUEST) {
        status = store_job_ask_cancel(m->store, job->id, job->attempt, c->by, clock_now(), e);
        if (!status)
            log_info("job %lld: cancellation requested by %s", (long long)job->id,
                     job_requester_name(c->by));
    } else if (action == DO_MARK_CANCEL) {
        status = job_mark_cancelled(m, job, e);
    } else { /* DO_WAKE_LOOP */
        pthread_mutex_lock(&m->mutex);
        array_add(m->cancel_ids, m->cancel_count, m->cancel_room) = job->id;
        pthread_mutex_unlock(&m->mutex);
    }
    return status;
}

int job_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    struct job_observation asked = {.event = ON_CANCEL_ASKED};
    struct store_job job;

    assert_object(m, JOB_MANAGER_MAGIC);
    /* Retry: its state may change between reading and writing. */
    for (int tries = 0;; tries++) {
        int status = store_job_get(m->store, id, &job, e);
        if (status)
            return status;
        struct job_machine machine = job_state_machine_of(job.state, job.slurm != NULL);
        struct job_cancelling cancelling = {m, &job, by};
        bool final = job_state_is_final(job.state);
        status = job_state_machine_step(&machine, &asked, job_cancel_act, &cancelling, e);
        if (status == MACHINE_NOTHING)
            status = error_set(e, ERR_CONFLICT, "job %lld has already %s", (long long)id,
                               job.state == JOB_CANCELLED ? "been cancelled"
                                                          : job_state_name(job.state));
        store_job_clear(&job);
        if (status >= 0) {
            job_manager_wake(m);
            return 0;
        }
        if (status != -(int)ERR_CONFLICT || final || tries == 5)
            return status;
    }
}

/* ---------------------------------------------------------------- resume */

static int job_check_resumable(const struct store_job *job, struct error *e)
{
    if (job->state == JOB_SUCCEEDED)
        return error_set(e, ERR_CONFLICT, "job %lld has succeeded: there is nothing to resume",
                         (long long)job->id);
    if (!job_state_is_final(job->state))
        return error_set(e, ERR_CONFLICT,
                         "job %lld is %s: only one that has failed or was cancelled can be resumed",
                         (long long)job->id, job_state_name(job->state));
    if (strcmp(json_get_text(store_job_spec(job), "mode", "train"), "train") == 0)
        return 0;
    return error_set(e, ERR_CONFLICT,
                     "job %lld is an evaluation and has no checkpoints: submit its document again",
                     (long long)job->id);
}

int job_resume(struct job_manager *m, int64_t id, const json_t *changes, const char *by,
               struct problems *problems, json_t **answer, struct error *e)
{
    struct job_replan r = {0};
    char reason[512];

    assert_object(m, JOB_MANAGER_MAGIC);
    *answer = NULL;
    int status = store_job_get(m->store, id, &r.job, e);
    if (!status)
        status = job_check_resumable(&r.job, e);
    if (!status)
        status = run_dir_check(m->store, &r.job, e);
    if (!status)
        status = job_replan_prepare(m, changes, &r, problems, e);
    if (!status) {
        int used =
            snprintf(reason, sizeof reason, "resumed on request, from its checkpoint of step %lld",
                     (long long)r.at.step);
        if (r.at.passed_over)
            snprintf(reason + used, sizeof reason - (size_t)used,
                     ", as that of step %lld cannot be used: %s", (long long)r.at.passed_over,
                     r.at.why_not);
        if (r.spec->restart.grow && !json_object_get(changes, "cluster"))
            r.wanted = xstrdup_or_null(r.job.wanted);
        status = job_replan_store(m, &r, false, reason, by, e);
    }
    if (!status) {
        *answer = json_incref(r.numbers);
        log_info("job %lld: resumed by %s%s", (long long)id, job_requester_name(by),
                 r.spec->priority != r.job.priority ? ", with another priority" : "");
        job_manager_wake(m);
    }
    job_replan_clear(&r);
    return status;
}

/* ---------------------------------------------------------------- hold, priority, labels */

/* Changes the store only: the queue skips held jobs, and the store refuses to begin an attempt of a
 * job held meanwhile. done: text for the log. */
static int job_change_waiting(struct job_manager *m, int64_t id,
                              struct store_waiting_change *change, const char *done,
                              struct error *e)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    change->now = clock_now();
    int status = store_job_change_waiting(m->store, id, change, e);

    if (status)
        return status;
    job_manager_wake(m); /* later jobs may be able to start */
    log_info("job %lld: %s by %s", (long long)id, done, job_requester_name(change->by));
    return 0;
}

int job_hold(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    struct store_waiting_change change = {.what = STORE_HOLD, .by = by};

    return job_change_waiting(m, id, &change, "held", e);
}

int job_release(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    struct store_waiting_change change = {.what = STORE_RELEASE, .by = by};

    return job_change_waiting(m, id, &change, "released", e);
}

int job_set_priority(struct job_manager *m, int64_t id, int64_t priority, const char *by,
                     struct error *e)
{
    struct store_waiting_change change = {.what = STORE_PRIORITY, .by = by, .priority = priority};
    char done[64];

    snprintf(done, sizeof done, "given priority %lld", (long long)priority);
    return job_change_waiting(m, id, &change, done, e);
}

int job_label(struct job_manager *m, int64_t id, const json_t *change, const char *by,
              struct error *e)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    int status = store_job_label(m->store, id, change, by, clock_now(), e);

    if (!status)
        log_info("job %lld: labelled by %s", (long long)id, job_requester_name(by));
    return status;
}
