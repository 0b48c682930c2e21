#include "daemon/job/job_queue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/system/host.h"
#include "common/xalloc.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_run.h"
#include "daemon/job/job_queue_plan.h"
#include "daemon/store/attempt.h"
#include "daemon/store/usage.h"

#define QUEUE_SCAN_MAX  256  /* jobs of each kind to try from the head of the queue */
#define QUEUE_READ_MAX  4096 /* jobs to sort by use, or to look through past skipped ones */
#define REFRESH_SECONDS 10   /* estimates change while jobs run */

struct queue_entry {
    const struct store_job *job;
    char *user; /* "": unnamed; NULL: not needed */
    double place;
};

struct queue_look {
    double now; /* Unix time */
    struct queue_plan *plan;
    char **users; /* users of the active jobs, in the same order; NULL: not needed */
    size_t user_count;
    struct store_waiting *changes; /* reasons to store */
    size_t change_count;
    size_t seen; /* jobs that wait for slots */
    bool over;   /* a job was replanned for fewer slots; start a new pass */
};

/* ---------------------------------------------------------------- running jobs */

static struct queue_running queue_running_of(struct job_manager *m, struct active_job *a,
                                             char **user)
{
    struct queue_running r = {
        .id = a->id,
        .slots = a->slots,
        .slurm = a->machine.slurm,
        .ends = {0, INFINITY, INFINITY},
        .hosts = &a->hosts
    };
    struct store_job job;
    struct error e;

    if (!r.slurm && (a->process.pid > 0 || user) && store_job_get(m->store, a->id, &job, &e) == 0) {
        if (a->process.pid > 0)
            r.ends = job_estimate_end(m->store, &job, launch_elapsed_seconds(&a->process));
        if (user && store_usage_user(m->store, job.submitted_by, user, &e) == 0)
            r.user = *user;
        store_job_clear(&job);
    }
    return r;
}

static bool queue_has_users(const struct job_manager *m)
{
    return m->limits.caps.running || m->limits.caps.slots || m->limits.fair_share.weight > 0;
}

static void queue_publish_ends(struct job_manager *m, const struct queue_running *running,
                               size_t count)
{
    struct queue_ends *ends = xcalloc(count + 1, sizeof *ends);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite(running[i].ends.likely))
            ends[kept++] = (struct queue_ends){running[i].id, running[i].ends};
    pthread_mutex_lock(&m->mutex);
    free(m->queue_ends);
    m->queue_ends = ends;
    m->queue_ends_count = kept;
    m->queue_ends_at = clock_monotonic();
    pthread_mutex_unlock(&m->mutex);
}

/* Without the active job `but` (NULL: with all), for a plan that is only thought of. */
static void queue_make_plan(struct job_manager *m, struct queue_look *l,
                            const struct active_job *but)
{
    size_t count = 0, i = 0;

    for (const struct active_job *a = m->active; a; a = a->next)
        count++;
    struct queue_running *running = xcalloc(count + 1, sizeof *running);
    if (queue_has_users(m)) {
        l->users = xcalloc(count + 1, sizeof *l->users);
        l->user_count = count;
    }
    for (struct active_job *a = m->active; a; a = a->next)
        if (a != but) {
            running[i] = queue_running_of(m, a, l->users ? &l->users[i] : NULL);
            i++;
        }
    if (!but)
        queue_publish_ends(m, running, count);
    l->plan = queue_plan_create(m->slots, &m->limits.caps, running, i);
    free(running);
}

/* ---------------------------------------------------------------- waiting jobs */

static void queue_set_reason(struct queue_look *l, const struct store_job *job, const char *reason,
                             double start)
{
    double estimated_start = isfinite(start) && start > 0 ? l->now + start : 0;
    double moved = fabs(estimated_start - job->estimated_start);
    bool same_time = moved < 5 || (estimated_start > 0 && job->estimated_start > 0 &&
                                   moved < 0.05 * (estimated_start - l->now));

    if (!reason)
        reason = job->reason;
    if (same_time && reason && job->reason && strcmp(job->reason, reason) == 0)
        return;
    l->changes[l->change_count++] =
        (struct store_waiting){job->id, xstrdup(reason ? reason : ""), estimated_start};
}

static double queue_pause(const struct job_manager *m, const struct store_job *job, double now)
{
    double wait = job->not_before - now;
    double longest = job_state_restart_delay(m->limits.restart_delay_seconds, job->restarts - 1);

    return wait > longest + 1 ? 0 : wait; /* longer than any pause: the clock was set back */
}

/* Loads a job with its documents, which the list omits. */
static struct active_job *queue_load(struct job_manager *m, int64_t id)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, id, &job, &e)) {
        log_error("job %lld cannot be started: %s", (long long)id, e.text);
        return NULL;
    }
    struct active_job *a = job_run_create(m, &job, PHASE_WAITING);
    job_run_make_ready(a, &job);
    return a;
}

static bool queue_start(struct job_manager *m, struct active_job *a)
{
    struct job_observation may = {.event = ON_MAY_START, .now = clock_monotonic()};
    struct error e;

    job_run_add(m, a);
    return job_run_dispatch(m, a, &may, &e) == MACHINE_DONE;
}

/* Returns whether the job was replanned for fewer workers and stays in the queue. */
static bool queue_refuse(struct job_manager *m, const struct store_job *job)
{
    struct job_observation never = {.event = ON_NEVER_FITS};
    struct error e;
    struct active_job *a = queue_load(m, job->id);

    if (!a)
        return false;
    if (job_run_dispatch(m, a, &never, &e) < 0 && e.code != ERR_CONFLICT)
        log_warning("job %lld: %s", (long long)job->id, e.text);
    bool smaller = a->machine.phase == PHASE_WAITING;
    job_run_destroy(m, a);
    return smaller;
}

/* Returns whether the job stays in the queue. *passed: because of a per-user limit or a pause. */
static bool queue_look_at(struct job_manager *m, struct queue_look *l,
                          const struct queue_entry *entry, bool *passed)
{
    const struct store_job *job = entry->job;
    struct queue_waiting waiting = {.id = job->id,
                                    .slots = job->slots,
                                    .user = entry->user,
                                    .not_before = queue_pause(m, job, l->now),
                                    .length = forecast_queued(job)};
    struct queue_decision d;
    struct active_job *a;

    if (job_run_find(m, job->id)) /* an earlier failure to start it is not stored yet */
        return true;
    assert_always(job->state == JOB_QUEUED);
    queue_plan_decide(l->plan, &waiting, &d);
    *passed = d.capped || d.choice == QUEUE_PAUSES;
    switch (d.choice) {
    case QUEUE_STARTS:
        a = queue_load(m, job->id);
        if (!a)
            return false;
        if (queue_plan_hosts(l->plan, &waiting, &a->hosts, &d)) {
            if (d.overtakes)
                log_info("job %lld starts before job %lld without delaying it", (long long)job->id,
                         (long long)d.overtakes);
            if (queue_start(m, a))
                queue_plan_started(l->plan, &waiting, &a->hosts);
            return false;
        }
        job_run_destroy(m, a);
        /* fall through - it waits for its hosts */
    case QUEUE_WAITS:
        queue_set_reason(l, job, d.reason, d.start);
        return true;
    case QUEUE_PAUSES:
        job_manager_want(m, TASK_QUEUE, clock_monotonic() + waiting.not_before);
        queue_set_reason(l, job, NULL, d.start);
        return true;
    case QUEUE_NEVER_FITS:
        l->over = queue_refuse(m, job);
    }
    return false;
}

/* ---------------------------------------------------------------- a scheduling pass */

static int queue_read(struct job_manager *m, enum store_launcher launcher, struct store_jobs *jobs)
{
    struct store_job_filter filter = {.states = 1u << JOB_QUEUED,
                                      .order = STORE_QUEUE_ORDER,
                                      .priority_seconds = m->limits.priority_seconds,
                                      .launcher = launcher,
                                      .limit = launcher == STORE_LOCAL &&
                                                       (queue_has_users(m) || m->queue_is_passed)
                                                   ? QUEUE_READ_MAX
                                                   : QUEUE_SCAN_MAX};
    struct error e;
    int status = store_job_list(m->store, &filter, jobs, &e);

    if (status) {
        log_error("cannot read the queue: %s", e.text);
        job_manager_want(m, TASK_QUEUE, clock_monotonic() + 1);
    }
    return status;
}

/* Jobs for Slurm take no slots here and wait in Slurm's queue. */
static void queue_hand_to_slurm(struct job_manager *m)
{
    struct store_jobs jobs = {0};
    double now = clock_now();

    queue_read(m, STORE_SLURM, &jobs);
    for (size_t i = 0; i < jobs.count && !m->stop; i++) {
        double pause = queue_pause(m, &jobs.items[i], now);
        if (job_run_find(m, jobs.items[i].id))
            continue;
        struct active_job *a = pause > 0 ? NULL : queue_load(m, jobs.items[i].id);
        if (pause > 0)
            job_manager_want(m, TASK_QUEUE, clock_monotonic() + pause);
        else if (a)
            queue_start(m, a);
    }
    if (jobs.count == QUEUE_SCAN_MAX)
        job_manager_want_queue(m);
    store_jobs_clear(&jobs);
}

static int queue_compare(const void *left, const void *right)
{
    const struct queue_entry *a = left, *b = right;

    return a->place != b->place ? (a->place > b->place) - (a->place < b->place)
                                : (a->job->id > b->job->id) - (a->job->id < b->job->id);
}

/* Returns the jobs in queue order: as listed, unless use affects their priority. */
static struct queue_entry *queue_sort(struct job_manager *m, const struct store_jobs *jobs,
                                      double now)
{
    const struct queue_fair_share *fair = &m->limits.fair_share;
    struct queue_entry *entries = xcalloc(jobs->count + 1, sizeof *entries);
    struct store_uses uses = {0};
    struct error e = {0};
    int status =
        fair->weight > 0 ? store_usage(m->store, now, fair->half_life_seconds, &uses, &e) : 0;

    for (size_t i = 0; i < jobs->count; i++) {
        const struct store_job *job = &jobs->items[i];
        entries[i].job = job;
        if (queue_has_users(m) && !status)
            status = store_usage_user(m->store, job->submitted_by, &entries[i].user, &e);
        double share = entries[i].user ? store_uses_share(&uses, entries[i].user) : 0;
        entries[i].place =
            queue_place(job->queued_at, job->priority, m->limits.priority_seconds, fair, share);
    }
    if (status)
        log_warning("cannot list the waiting jobs, so the queue is checked by time only: %s",
                    e.text);
    qsort(entries, jobs->count, sizeof *entries, queue_compare);
    for (size_t i = 1; i < jobs->count; i++) /* but for rounding */
        assert_always(entries[i].place > entries[i - 1].place - 1e-3);
    store_uses_clear(&uses);
    return entries;
}

static void queue_publish_order(struct job_manager *m, const struct queue_entry *entries,
                                size_t count)
{
    int64_t *ids = xcalloc(count + 1, sizeof *ids);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!job_run_find(m, entries[i].job->id))
            ids[kept++] = entries[i].job->id;
    pthread_mutex_lock(&m->mutex);
    free(m->queue_ids);
    m->queue_ids = ids;
    m->queue_count = kept;
    pthread_mutex_unlock(&m->mutex);
}

static void queue_free(struct queue_look *l, struct queue_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(entries[i].user);
    for (size_t i = 0; i < l->user_count; i++)
        free(l->users[i]);
    free(entries);
    free(l->users);
    queue_plan_destroy(l->plan);
}

/* Returns whether jobs wait. Skipped jobs, and jobs that wait for other machines, do not count as
 * seen, so that many of them do not keep later jobs from being considered. */
static bool queue_look_at_all(struct job_manager *m, const struct store_jobs *jobs)
{
    struct queue_look l = {.now = clock_now()};
    struct queue_entry *entries = queue_sort(m, jobs, l.now);
    size_t elsewhere = 0;
    bool waiting = false;
    struct error e;

    queue_make_plan(m, &l, NULL);
    l.changes = xcalloc(jobs->count + 1, sizeof *l.changes);
    for (size_t i = 0; i < jobs->count && l.seen < QUEUE_SCAN_MAX && !m->stop && !l.over; i++) {
        bool passed = false, here = entries[i].job->slots > 0;
        if (!here && elsewhere++ >= QUEUE_SCAN_MAX)
            continue;
        waiting |= queue_look_at(m, &l, &entries[i], &passed);
        l.seen += here && !passed;
    }
    bool passed = l.seen < QUEUE_SCAN_MAX && jobs->count >= QUEUE_SCAN_MAX;
    if (passed && !m->queue_is_passed) /* read the next ones at once */
        job_manager_want_queue(m);
    m->queue_is_passed = passed;
    queue_publish_order(m, entries, jobs->count);
    if (l.change_count && store_jobs_wait(m->store, l.changes, l.change_count, &e))
        log_warning("cannot store what the queued jobs wait for: %s", e.text);
    for (size_t i = 0; i < l.change_count; i++)
        free((char *)l.changes[i].reason);
    free(l.changes);
    queue_free(&l, entries, jobs->count);
    return waiting;
}

/* ---------------------------------------------------------------- a job that may grow */

bool job_queue_would_start(struct job_manager *m, const struct active_job *a,
                           const struct store_job *job, int64_t slots, json_t *hosts)
{
    struct queue_look l = {.now = clock_now()};
    struct store_jobs jobs = {0};
    struct queue_decision d;
    struct host host;

    assert_object(m, JOB_MANAGER_MAGIC);
    if (queue_read(m, STORE_LOCAL, &jobs))
        return false;
    array_add(jobs.items, jobs.count, jobs.capacity) = *job;
    struct queue_entry *entries = queue_sort(m, &jobs, l.now);
    struct queue_waiting waiting = {
        .id = job->id, .slots = slots, .user = entries[0].user, .length = forecast_queued(job)};
    queue_make_plan(m, &l, a);
    queue_plan_decide(l.plan, &waiting, &d);
    bool starts = entries[0].job->id == job->id && d.choice == QUEUE_STARTS;
    for (size_t i = json_array_size(hosts); i-- > 0;) {
        struct job_hosts one = {&host, 1, a->hosts.slots};
        if (!host_parse(json_string_value(json_array_get(hosts, i)), &host) ||
            !queue_plan_hosts(l.plan, &waiting, &one, &d))
            json_array_remove(hosts, i);
    }
    queue_free(&l, entries, jobs.count);
    jobs.count--; /* the caller's row */
    store_jobs_clear(&jobs);
    return starts;
}

/* ---------------------------------------------------------------- the loop's task */

void job_queue_start(struct job_manager *m)
{
    struct store_jobs jobs = {0};
    int64_t queued;
    struct error e;

    assert_object(m, JOB_MANAGER_MAGIC);
    queue_hand_to_slurm(m);
    if (queue_read(m, STORE_LOCAL, &jobs) == 0 && jobs.count == 0) {
        queue_publish_order(m, NULL, 0);
        queue_publish_ends(m, NULL, 0);
    }
    if (jobs.count && queue_look_at_all(m, &jobs) && m->active)
        job_manager_want(m, TASK_QUEUE, clock_monotonic() + REFRESH_SECONDS);
    store_jobs_clear(&jobs);
    if (store_job_count(m->store, 1u << JOB_QUEUED, &queued, &e))
        return;
    pthread_mutex_lock(&m->mutex);
    m->used.queued = queued;
    pthread_mutex_unlock(&m->mutex);
}
