/*
 * Cancelling: any thread may ask, the loop does it. The wish is stored, and a file in the attempt's
 * folder, so that neither a daemon that is killed in between nor a batch script misses it.
 */
#include <limits.h>
#include <stdio.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/job_change.h"

const char *job_by_words(const char *by)
{
    return by ? by : "a user without a token";
}

struct cancelling {
    struct job_manager *m;
    const struct store_job *job;
    const char *by;
};

static int cancel_store_cancelled(const struct cancelling *c, struct error *e)
{
    const char *reason = c->job->attempt > 0 ? "cancelled on request while it waited to resume"
                                             : "cancelled on request before it started";
    int status = store_job_cancel_waiting(c->m->store, c->job->id, reason, c->by, clock_now(), e);

    if (!status)
        log_info("job %lld: cancelled by %s", (long long)c->job->id, job_by_words(c->by));
    return status;
}

static int cancel_store_wish(const struct cancelling *c, struct error *e)
{
    int status =
        store_job_ask_cancel(c->m->store, c->job->id, c->job->attempt, c->by, clock_now(), e);

    if (!status)
        log_info("job %lld: its cancelling was requested by %s", (long long)c->job->id,
                 job_by_words(c->by));
    return status;
}

static int cancel_mark_wish(const struct cancelling *c, struct error *e)
{
    char folder[PATH_MAX];

    if ((size_t)snprintf(folder, sizeof folder, "%s/attempt-%lld", c->job->run_dir,
                         (long long)c->job->attempt) >= sizeof folder)
        return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
    pthread_mutex_lock(&c->m->files);
    int status = run_dir_claim(c->m->store, c->job, e);
    if (!status)
        status = file_make_dirs(folder, e); /* it is about to be started, perhaps */
    pthread_mutex_unlock(&c->m->files);
    return status ? status : attempt_flag_write(folder, ATTEMPT_FLAG_CANCEL, e);
}

static void cancel_tell_loop(const struct cancelling *c)
{
    struct job_manager *m = c->m;

    pthread_mutex_lock(&m->mutex);
    array_add(m->cancel_ids, m->cancel_count, m->cancel_room) = c->job->id;
    pthread_mutex_unlock(&m->mutex);
    job_manager_wake(m);
}

static int cancel_act(void *context, enum job_action action, struct error *e)
{
    const struct cancelling *c = context;

    switch (action) {
    case DO_STORE_CANCELLED:
        return cancel_store_cancelled(c, e);
    case DO_STORE_WISH:
        return cancel_store_wish(c, e);
    case DO_MARK_WISH:
        return cancel_mark_wish(c, e);
    default:
        cancel_tell_loop(c);
        return 0;
    }
}

static int cancel_once(struct job_manager *m, const struct store_job *job, const char *by,
                       struct error *e)
{
    struct job_machine machine = job_state_machine_of(job->state, job->slurm != NULL);
    struct job_observation asked = {.event = ON_CANCEL_ASKED};
    struct cancelling cancelling = {m, job, by};
    int status = job_state_machine_step(&machine, &asked, cancel_act, &cancelling, e);

    if (status == MACHINE_NOTHING)
        return error_set(e, ERR_CONFLICT, "job %lld has %s already", (long long)job->id,
                         job->state == JOB_CANCELLED ? "been cancelled"
                                                     : job_state_name(job->state));
    return status < 0 ? status : 0;
}

int job_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    /* Its state may change between reading and writing. */
    for (int tries = 0;; tries++) {
        struct store_job job;
        int status = store_job_get(m->store, id, &job, e);
        if (status)
            return status;
        bool final = job_state_is_final(job.state);
        status = cancel_once(m, &job, by, e);
        store_job_clear(&job);
        if (status == 0)
            job_manager_wake(m);
        if (status != -(int)ERR_CONFLICT || final || tries == 5)
            return status;
    }
}
