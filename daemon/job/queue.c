/* First come, first served (within a priority): a job that does not fit yet holds back those behind
 * it, so that no stream of small jobs keeps a large one waiting for ever. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/job/manager.h"

#define QUEUE_TOLD 256 /* jobs at the head of the queue that are told what they wait for */

int64_t queue_slots_used(const struct job_manager *m)
{
    int64_t used = 0;
    for (const struct active_job *a = m->active; a; a = a->next)
        used += a->slots;
    return used;
}

static void say_reason(struct job_manager *m, const struct store_job *job, const char *reason)
{
    struct store_state_change same = {JOB_QUEUED, reason, clock_now()};
    struct error e;

    if (job->reason && strcmp(job->reason, reason) == 0)
        return;
    /* A conflict is fine: the job was cancelled just now. */
    if (store_job_set_state(m->store, job->id, &same, &e) && e.code != ERR_CONFLICT)
        log_warning("job %lld: %s", (long long)job->id, e.text);
}

/* "jobs 3 and 4 are running" */
static void name_running(const struct job_manager *m, char *text, size_t bytes)
{
    int count = 0;
    size_t used = 0;

    text[0] = '\0';
    for (const struct active_job *a = m->active; a && count < 5 && used < bytes; a = a->next) {
        const char *before = count == 0 ? "" : a->next && count < 4 ? ", " : " and ";
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", before, (long long)a->id);
        count++;
    }
}

static void say_waits_for_slots(struct job_manager *m, const struct store_job *job)
{
    char running[128], reason[320];

    name_running(m, running, sizeof running);
    snprintf(reason, sizeof reason, "waits for %lld of %lld slots; running: job%s %s",
             (long long)job->slots, (long long)m->slots, m->active && m->active->next ? "s" : "",
             running);
    say_reason(m, job, reason);
}

/* The daemon was started again with fewer slots than when the job was taken. */
static void refuse_for_ever(struct job_manager *m, const struct store_job *job)
{
    char reason[256];
    struct error e;
    struct store_state_change failed = {JOB_FAILED, reason, clock_now()};

    snprintf(reason, sizeof reason,
             "takes %lld slots, but this node has only %lld now: submit it again with fewer "
             "workers, or set slots in traind.conf",
             (long long)job->slots, (long long)m->slots);
    if (store_job_set_state(m->store, job->id, &failed, &e) && e.code != ERR_CONFLICT)
        log_warning("job %lld: %s", (long long)job->id, e.text);
}

/* The list has no documents: they are loaded for the one that starts. */
static void start(struct job_manager *m, int64_t id)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, id, &job, &e)) {
        log_error("job %lld cannot be started: %s", (long long)id, e.text);
        return;
    }
    job_start(m, &job);
    store_job_clear(&job);
}

/* True: the job stays in the queue. */
static bool look_at(struct job_manager *m, const struct store_job *job, int64_t *held_by)
{
    char reason[128];

    if (*held_by) {
        snprintf(reason, sizeof reason, "waits behind job %lld", (long long)*held_by);
        say_reason(m, job, reason);
    } else if (job->slots > m->slots) {
        refuse_for_ever(m, job);
        return false;
    } else if (job->slots > m->slots - queue_slots_used(m)) {
        say_waits_for_slots(m, job);
        *held_by = job->id;
    } else {
        start(m, job->id);
        return false;
    }
    return true;
}

void queue_start_jobs(struct job_manager *m)
{
    struct store_job_filter filter = {.states = 1u << JOB_QUEUED, .order = STORE_QUEUE_ORDER};
    struct store_jobs jobs = {0};
    struct error e;
    int64_t held_by = 0, queued = 0;

    m->look_at_queue = false;
    if (store_job_list(m->store, &filter, &jobs, &e)) {
        log_error("cannot read the queue: %s", e.text);
        return;
    }
    for (size_t i = 0; i < jobs.count && !m->stop; i++)
        if (queued >= QUEUE_TOLD || look_at(m, &jobs.items[i], &held_by))
            queued++;
    store_jobs_clear(&jobs);
    pthread_mutex_lock(&m->mutex);
    m->used.queued = queued;
    pthread_mutex_unlock(&m->mutex);
}
