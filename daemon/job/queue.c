/*
 * The queue. Jobs stand in the order of store_job_list's STORE_QUEUE_ORDER: as though each point of
 * priority had let a job wait for priority_seconds already; so whoever waits comes first in the
 * end. A job that does not fit yet holds back those behind it. One of those may start before it
 * only where it does not delay it: where it will have ended, by its time limit or the upper end of
 * its prediction, before the running jobs can have made room.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/job/forecast.h"
#include "daemon/job/manager.h"
#include "daemon/job/measure.h"

#define QUEUE_TOLD      256 /* jobs at the head of the queue that are looked at and told */
#define REFRESH_SECONDS 10  /* estimates change while jobs run */
#define REASON_BYTES    320

int64_t queue_slots_used(const struct job_manager *m)
{
    int64_t used = 0;
    for (const struct active_job *a = m->active; a; a = a->next)
        used += a->slots;
    return used;
}

/* One look at the queue. */
struct look {
    double now;                             /* Unix seconds */
    struct forecast_span *soonest, *likely; /* of running jobs, then of those placed before */
    int64_t *ids;                           /* whose span it is */
    size_t count, running;
    int64_t held_by;            /* the first job that does not fit; 0: none */
    double held_until;          /* the earliest that it can start: seconds from now */
    double last_start;          /* estimated, of the job before */
    struct job_hosts claimed;   /* by jobs that wait, of those named before them */
    int64_t claimed_by;         /* the first of them; 0: none */
    struct store_waiting *told; /* what is to be written */
    size_t told_count;
};

static void look_clear(struct look *l)
{
    for (size_t i = 0; i < l->told_count; i++)
        free((char *)l->told[i].reason);
    job_hosts_clear(&l->claimed);
    free(l->soonest);
    free(l->likely);
    free(l->ids);
    free(l->told);
}

static int look_create(struct job_manager *m, struct look *l)
{
    size_t room = QUEUE_TOLD;

    for (const struct active_job *a = m->active; a; a = a->next)
        room++;
    *l = (struct look){.now = clock_now()};
    l->soonest = calloc(room, sizeof *l->soonest);
    l->likely = calloc(room, sizeof *l->likely);
    l->ids = calloc(room, sizeof *l->ids);
    l->told = calloc(QUEUE_TOLD, sizeof *l->told);
    if (l->soonest && l->likely && l->ids && l->told)
        return 0;
    look_clear(l);
    log_error("no memory to look at the queue");
    return -1;
}

static void add_span(struct look *l, int64_t id, int64_t slots, double soonest, double likely)
{
    l->ids[l->count] = id;
    l->soonest[l->count] = (struct forecast_span){slots, soonest};
    l->likely[l->count++] = (struct forecast_span){slots, likely};
}

/* A job whose progress cannot be read is one that nothing is known of. */
static void add_running(struct job_manager *m, struct look *l)
{
    for (struct active_job *a = m->active; a; a = a->next) {
        if (a->process.slurm)
            continue;
        struct forecast_end end = {0, INFINITY, INFINITY};
        struct store_job job;
        struct error e;
        if (store_job_get(m->store, a->id, &job, &e) == 0) {
            end = measure_end(&job, launch_elapsed_seconds(&a->process));
            store_job_clear(&job);
        }
        add_span(l, a->id, a->slots, end.soonest, end.likely);
    }
    l->running = l->count;
}

/* ---------------------------------------------------------------- words */

static const struct active_job *next_local(const struct active_job *a)
{
    do
        a = a->next;
    while (a && a->process.slurm);
    return a;
}

/* "3, 4 and 5" */
static void name_running(const struct job_manager *m, char *text, size_t bytes)
{
    int count = 0;
    size_t used = 0;

    text[0] = '\0';
    for (const struct active_job *a = m->active; a && count < 5 && used < bytes; a = a->next) {
        if (a->process.slurm)
            continue;
        const char *before = count == 0 ? "" : next_local(a) && count < 4 ? ", " : " and ";
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", before, (long long)a->id);
        count++;
    }
}

static void words_for_slots(const struct job_manager *m, const struct look *l,
                            const struct store_job *job, char *reason)
{
    char running[128];
    int by;
    double when = forecast_fit(l->likely, l->running, m->slots, job->slots, 0, &by);
    int used = snprintf(reason, REASON_BYTES, "waits for %lld of %lld slots; ",
                        (long long)job->slots, (long long)m->slots);

    if (isfinite(when) && by >= 0) {
        used += snprintf(reason + used, (size_t)(REASON_BYTES - used), "job %lld ends ",
                         (long long)l->ids[by]);
        forecast_words(when, reason + used, (size_t)(REASON_BYTES - used));
        return;
    }
    name_running(m, running, sizeof running);
    snprintf(reason + used, (size_t)(REASON_BYTES - used), "running: job%s %s",
             m->active && m->active->next ? "s" : "", running);
}

/* Where this job starts, as far as one can say, if all before it take the time they are thought to.
 */
static double place(struct job_manager *m, struct look *l, const struct store_job *job)
{
    double from = fmax(l->last_start, job->not_before > l->now ? job->not_before - l->now : 0);
    double start = forecast_fit(l->likely, l->count, m->slots, job->slots, from, NULL);
    struct forecast_end length = forecast_queued(job);

    l->last_start = start;
    if (isfinite(start))
        add_span(l, job->id, job->slots, start + length.soonest, start + length.likely);
    return isfinite(start) ? l->now + start : 0;
}

static void tell(struct look *l, const struct store_job *job, const char *reason,
                 double estimated_start)
{
    double moved = fabs(estimated_start - job->estimated_start);
    bool same_time = moved < 5 || (estimated_start > 0 && job->estimated_start > 0 &&
                                   moved < 0.05 * (estimated_start - l->now));

    if (!reason)
        reason = job->reason;
    if (same_time && reason && job->reason && strcmp(job->reason, reason) == 0)
        return;
    char *copy = strdup(reason ? reason : "");
    if (copy)
        l->told[l->told_count++] = (struct store_waiting){job->id, copy, estimated_start};
}

/* ---------------------------------------------------------------- hosts */

/* The slots of a host that running jobs take; -1: one of them has it to itself. *by: the last. */
static int64_t host_slots_used(const struct job_manager *m, const char *name, int64_t *by)
{
    int64_t used = 0;

    for (const struct active_job *a = m->active; a; a = a->next) {
        const struct host *there = job_hosts_find(&a->hosts, name);
        if (!there)
            continue;
        *by = a->id;
        if (there->slots == 0)
            return -1;
        used += a->hosts.slots;
    }
    return used;
}

/* Jobs behind this one leave its hosts alone, so that it comes to its turn. */
static void claim(struct look *l, const struct job_hosts *hosts, int64_t id)
{
    size_t count = l->claimed.count + hosts->count;
    struct host *items = realloc(l->claimed.items, (count + 1) * sizeof *items);

    if (!items)
        return;
    if (hosts->count)
        memcpy(items + l->claimed.count, hosts->items, hosts->count * sizeof *items);
    l->claimed.items = items;
    l->claimed.count = count;
    if (!l->claimed_by)
        l->claimed_by = id;
}

static bool hosts_are_free(const struct job_manager *m, const struct look *l,
                           const struct job_hosts *hosts, char *reason)
{
    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *h = &hosts->items[i];
        int64_t by = 0, used = host_slots_used(m, h->name, &by);
        if (job_hosts_find(&l->claimed, h->name)) {
            snprintf(reason, REASON_BYTES, "waits for host %.150s, behind job %lld", h->name,
                     (long long)l->claimed_by);
            return false;
        }
        if (used == 0 || (used > 0 && h->slots && used + hosts->slots <= h->slots))
            continue;
        snprintf(reason, REASON_BYTES, "waits for host %.150s, which job %lld uses", h->name,
                 (long long)by);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- one job */

/* The daemon was started again with fewer slots than when the job was taken. */
static void refuse_for_ever(struct job_manager *m, const struct store_job *job, const char *why)
{
    char reason[ERROR_TEXT_BYTES + REASON_BYTES];
    struct error e;
    struct store_state_change failed = {JOB_FAILED, reason, clock_now(), NULL};

    snprintf(reason, sizeof reason,
             "takes %lld slots, but this node has only %lld now%s%s: submit it again with fewer "
             "workers, or set slots in traind.conf",
             (long long)job->slots, (long long)m->slots, why ? "; " : "", why ? why : "");
    if (store_job_set_state(m->store, job->id, &failed, &e) && e.code != ERR_CONFLICT)
        log_warning("job %lld: %s", (long long)job->id, e.text);
}

/* The list has no documents: they are loaded for the one that starts. False: it waits for hosts,
 * for the reason. */
static bool start(struct job_manager *m, struct look *l, const struct store_job *brief,
                  char *reason)
{
    struct store_job job;
    struct error e;
    struct job_hosts hosts = {0};
    int64_t used = queue_slots_used(m);

    if (store_job_get(m->store, brief->id, &job, &e)) {
        log_error("job %lld cannot be started: %s", (long long)brief->id, e.text);
        return true;
    }
    struct job_spec *spec = job_stored_spec(&job, &e); /* NULL: job_start says so */
    bool starts =
        !spec || !job_hosts_of(spec, m->slots, &hosts) || hosts_are_free(m, l, &hosts, reason);
    if (starts)
        job_start(m, &job);
    else
        claim(l, &hosts, brief->id);
    job_hosts_clear(&hosts);
    job_spec_destroy(spec);
    store_job_clear(&job);
    if (queue_slots_used(m) != used) {
        struct forecast_end length = forecast_queued(brief);
        add_span(l, brief->id, brief->slots, length.soonest, length.likely);
    }
    return starts;
}

/* The node has become too small: a job that has a checkpoint goes on with fewer workers, as its
 * restart.on_fewer_nodes says. True: it stays in the queue, with other numbers. */
static bool shrink(struct job_manager *m, const struct store_job *job)
{
    struct error e = {0};

    if (job->resumes && job_shrink(m, job->id, &e) == 0) {
        m->look_at_queue = true;
        return true;
    }
    refuse_for_ever(m, job, job->resumes ? e.text : NULL);
    return false;
}

/* True: its restart's pause is over. */
static bool is_due(struct job_manager *m, const struct store_job *job, double now)
{
    double wait = job->not_before - now;

    /* A longer pause than there can be: the clock was set back. */
    if (wait <= 0 || wait > job_restart_delay(m, job->restarts - 1) + 1)
        return true;
    m->queue_next_at = fmin(m->queue_next_at, clock_monotonic() + wait);
    return false;
}

/* True: the job stays in the queue. */
static bool look_at(struct job_manager *m, struct look *l, const struct store_job *job)
{
    char reason[REASON_BYTES];
    bool fits = job->slots <= m->slots - queue_slots_used(m);

    if (job->slots > m->slots)
        return shrink(m, job);
    if (!is_due(m, job, l->now)) {
        tell(l, job, NULL, job->not_before);
        return true;
    }
    if (fits && (!l->held_by || forecast_queued(job).latest <= l->held_until)) {
        if (l->held_by)
            log_info("job %lld starts before job %lld, which it does not delay", (long long)job->id,
                     (long long)l->held_by);
        if (start(m, l, job, reason))
            return false;
        tell(l, job, reason, 0);
        return true;
    }
    if (l->held_by) {
        snprintf(reason, sizeof reason, "waits behind job %lld", (long long)l->held_by);
    } else {
        l->held_by = job->id;
        l->held_until = forecast_fit(l->soonest, l->count, m->slots, job->slots, 0, NULL);
        words_for_slots(m, l, job, reason);
    }
    tell(l, job, reason, place(m, l, job));
    return true;
}

static void publish_queued(struct job_manager *m)
{
    int64_t queued;
    struct error e;

    if (store_job_count(m->store, 1u << JOB_QUEUED, &queued, &e))
        return;
    pthread_mutex_lock(&m->mutex);
    m->used.queued = queued;
    pthread_mutex_unlock(&m->mutex);
}

/* Jobs for Slurm take no slots and wait in its queue, not here. */
static void hand_to_slurm(struct job_manager *m)
{
    struct store_job_filter filter = {.states = 1u << JOB_QUEUED,
                                      .order = STORE_QUEUE_ORDER,
                                      .priority_seconds = m->limits.priority_seconds,
                                      .launcher = STORE_SLURM,
                                      .documents = true,
                                      .limit = QUEUE_TOLD};
    struct store_jobs jobs = {0};
    struct error e;
    double now = clock_now();

    if (store_job_list(m->store, &filter, &jobs, &e))
        log_error("cannot read the queue: %s", e.text);
    for (size_t i = 0; i < jobs.count && !m->stop; i++)
        if (is_due(m, &jobs.items[i], now))
            job_start(m, &jobs.items[i]);
    m->look_at_queue = m->look_at_queue || jobs.count == QUEUE_TOLD;
    store_jobs_clear(&jobs);
}

void queue_start_jobs(struct job_manager *m)
{
    struct store_job_filter filter = {.states = 1u << JOB_QUEUED,
                                      .order = STORE_QUEUE_ORDER,
                                      .priority_seconds = m->limits.priority_seconds,
                                      .launcher = STORE_LOCAL,
                                      .limit = QUEUE_TOLD};
    struct store_jobs jobs = {0};
    struct look l;
    struct error e;
    bool waiting = false;

    m->look_at_queue = false;
    m->queue_next_at = INFINITY;
    job_store_failed_starts(m);
    hand_to_slurm(m);
    if (look_create(m, &l))
        return;
    if (store_job_list(m->store, &filter, &jobs, &e)) {
        log_error("cannot read the queue: %s", e.text);
        m->queue_next_at = clock_monotonic() + 1;
    } else {
        if (jobs.count)
            add_running(m, &l);
        for (size_t i = 0; i < jobs.count && !m->stop; i++)
            waiting |= look_at(m, &l, &jobs.items[i]);
    }
    if (l.told_count && store_jobs_wait(m->store, l.told, l.told_count, &e))
        log_warning("what the queue waits for was not stored: %s", e.text);
    if (waiting && m->active)
        m->queue_next_at = fmin(m->queue_next_at, clock_monotonic() + REFRESH_SECONDS);
    store_jobs_clear(&jobs);
    look_clear(&l);
    publish_queued(m);
}
