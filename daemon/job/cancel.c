/*
 * Cancelling: any thread may ask, the loop does it (stop.c). The request is also a file in the
 * attempt's folder, so that a daemon that is killed in between goes on with it when it is back.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "daemon/job/manager.h"
#include "daemon/job/run_dir.h"

#define REQUEST "cancel-requested"

bool cancel_is_requested(const char *attempt_dir)
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof path, "%s/" REQUEST, attempt_dir) < sizeof path &&
           access(path, F_OK) == 0;
}

static int write_request(struct job_manager *m, const struct store_job *job, struct error *e)
{
    char folder[PATH_MAX - sizeof "/" REQUEST], path[PATH_MAX];

    if ((size_t)snprintf(folder, sizeof folder, "%s/attempt-%lld", job->run_dir,
                         (long long)job->attempt) >= sizeof folder)
        return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
    snprintf(path, sizeof path, "%s/" REQUEST, folder);
    pthread_mutex_lock(&m->files);
    int status = run_dir_claim(m->store, job, e);
    if (!status)
        status = file_make_dirs(folder, e); /* it is about to be started, perhaps */
    pthread_mutex_unlock(&m->files);
    return status ? status : file_write_atomic(path, "", 0, e);
}

const char *job_by_words(const char *by)
{
    return by ? by : "somebody without a token";
}

static int ask_loop(struct job_manager *m, const struct store_job *job, const char *by,
                    struct error *e)
{
    int status = store_job_ask_cancel(m->store, job->id, "being cancelled", by, clock_now(), e);

    if (!status)
        status = write_request(m, job, e);
    if (status)
        return status;
    log_info("job %lld: %s asks to cancel it", (long long)job->id, job_by_words(by));
    pthread_mutex_lock(&m->mutex);
    if (m->cancel_count == m->cancel_room) {
        size_t room = m->cancel_room ? 2 * m->cancel_room : 16;
        int64_t *grown = realloc(m->cancel_ids, room * sizeof *grown);
        if (grown) {
            m->cancel_ids = grown;
            m->cancel_room = room;
        } else {
            status =
                error_set(e, ERR_NO_MEMORY, "no memory to cancel job %lld", (long long)job->id);
        }
    }
    if (!status)
        m->cancel_ids[m->cancel_count++] = job->id;
    pthread_mutex_unlock(&m->mutex);
    manager_wake(m);
    return status;
}

static int cancel_once(struct job_manager *m, const struct store_job *job, const char *by,
                       struct error *e)
{
    if (job_state_is_final(job->state))
        return error_set(e, ERR_CONFLICT, "job %lld has %s already", (long long)job->id,
                         job->state == JOB_CANCELLED ? "been cancelled"
                                                     : job_state_name(job->state));
    if (job_state_is_active(job->state) || job->slurm) /* in Slurm's queue */
        return ask_loop(m, job, by, e);
    struct store_state_change cancelled = {JOB_CANCELLED,
                                           job->attempt > 0
                                               ? "cancelled on request while it waited to go on"
                                               : "cancelled on request before it started",
                                           clock_now(), by};
    int status = store_job_set_state(m->store, job->id, &cancelled, e);
    if (!status)
        log_info("job %lld: cancelled by %s", (long long)job->id, job_by_words(by));
    return status;
}

int job_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    /* Its state may change between reading and writing, but only twice until it is active. */
    for (int attempt = 0;; attempt++) {
        struct store_job job;
        int status = store_job_get(m->store, id, &job, e);
        if (status)
            return status;
        status = cancel_once(m, &job, by, e);
        bool was_queued = job.state == JOB_QUEUED;
        store_job_clear(&job);
        if (status == 0)
            manager_wake(m);
        if (status != -(int)ERR_CONFLICT || !was_queued || attempt == 2)
            return status;
    }
}

void cancel_take_requests(struct job_manager *m)
{
    pthread_mutex_lock(&m->mutex);
    int64_t *ids = m->cancel_ids;
    size_t count = m->cancel_count;
    m->cancel_ids = NULL;
    m->cancel_count = m->cancel_room = 0;
    pthread_mutex_unlock(&m->mutex);
    /* A job that is not there any more has ended in the meantime. */
    for (size_t i = 0; i < count; i++)
        for (struct active_job *a = m->active; a; a = a->next)
            if (a->id == ids[i])
                stop_begin(m, a, FAILURE_CANCELLED);
    free(ids);
}
