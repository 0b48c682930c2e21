/*
 * Cancelling: any thread may ask, the loop does it in stages. The request is also a file in the run
 * directory, so that a daemon that is killed in between goes on with it when it is back.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "daemon/job/manager.h"

#define TERM_SECONDS 3 /* mpirun kills its ranks one second behind SIGTERM and then cleans up */

static int request_path(const char *run_dir, char *path, size_t bytes)
{
    return (size_t)snprintf(path, bytes, "%s/cancel-requested", run_dir) < bytes ? 0 : -1;
}

bool cancel_is_requested(const char *run_dir)
{
    char path[PATH_MAX];
    return request_path(run_dir, path, sizeof path) == 0 && access(path, F_OK) == 0;
}

static int ask_loop(struct job_manager *m, const struct store_job *job, struct error *e)
{
    char path[PATH_MAX];
    int status = 0;

    if (request_path(job->run_dir, path, sizeof path))
        return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
    if ((status = file_write_atomic(path, "", 0, e)))
        return status;
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

static int cancel_once(struct job_manager *m, const struct store_job *job, struct error *e)
{
    if (job_state_is_final(job->state))
        return error_set(e, ERR_CONFLICT, "job %lld has %s already", (long long)job->id,
                         job->state == JOB_CANCELLED ? "been cancelled"
                                                     : job_state_name(job->state));
    if (job_state_is_active(job->state))
        return ask_loop(m, job, e);
    struct store_state_change cancelled = {JOB_CANCELLED, "cancelled on request before it started",
                                           clock_now()};
    return store_job_set_state(m->store, job->id, &cancelled, e);
}

int job_cancel(struct job_manager *m, int64_t id, struct error *e)
{
    /* Its state may change between reading and writing, but only twice until it is active. */
    for (int attempt = 0;; attempt++) {
        struct store_job job;
        int status = store_job_get(m->store, id, &job, e);
        if (status)
            return status;
        status = cancel_once(m, &job, e);
        bool was_queued = job.state == JOB_QUEUED;
        store_job_clear(&job);
        if (status == 0)
            manager_wake(m);
        if (status != -(int)ERR_CONFLICT || !was_queued || attempt == 2)
            return status;
    }
}

/* ---------------------------------------------------------------- the loop's side */

static void say_cancelling(struct job_manager *m, const struct active_job *a)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, a->id, &job, &e))
        return;
    struct store_state_change same = {
        job.state, "being cancelled: the workers end after the step they are in", clock_now()};
    if (store_job_set_state(m->store, a->id, &same, &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
    store_job_clear(&job);
}

static void start_cancel(struct job_manager *m, struct active_job *a)
{
    if (a->cancel != CANCEL_NONE || a->ended)
        return;
    log_info("job %lld: being cancelled", (long long)a->id);
    a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_AFTER_STEP);
    a->cancel = CANCEL_ASKED;
    a->cancel_next_at = clock_monotonic() + m->cancel_grace_seconds;
    say_cancelling(m, a);
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
                start_cancel(m, a);
    free(ids);
}

void cancel_go_on(struct job_manager *m, struct active_job *a, double now)
{
    if (a->cancel == CANCEL_NONE && !a->ended && cancel_is_requested(a->run_dir))
        start_cancel(m, a);
    if (a->cancel == CANCEL_NONE || a->ended || now < a->cancel_next_at)
        return;
    bool terminate = a->cancel == CANCEL_ASKED;
    a->cancel = terminate ? CANCEL_TERMINATED : CANCEL_KILLED;
    a->cancel_next_at = now + TERM_SECONDS;
    log_info("job %lld: %s", (long long)a->id,
             terminate ? "the workers did not stop in time, mpirun is told to end them"
                       : "its processes are killed");
    a->launcher->stop(&a->process, a->attempt_dir, terminate ? LAUNCH_STOP_NOW : LAUNCH_STOP_KILL);
}
