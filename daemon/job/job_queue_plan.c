#include "daemon/job/job_queue_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/xalloc.h"
#include "daemon/job/job_resources.h"

#define QUEUE_NAMED 5 /* running jobs named in a reason */

#define QUEUE_PLAN_MAGIC 0x9bebe175u

struct queue_plan {
    unsigned magic;
    int64_t slots, used;
    struct queue_caps caps;
    struct queue_running *running; /* the first running_count are running or were just started */
    size_t running_count, running_room;
    struct forecast_span *soonest,
        *likely;  /* spans of running jobs, then of jobs placed in this pass */
    int64_t *ids; /* job id of each span */
    size_t count, capacity;
    size_t first_placed;      /* earlier spans are those of jobs running when the pass began */
    int64_t held_by;          /* first job that does not fit; 0: none */
    double held_until;        /* earliest time it can start */
    double last_start;        /* estimated start of the previous job */
    struct job_hosts claimed; /* hosts named by waiting jobs so far */
    size_t claimed_room;
    int64_t claimed_by; /* the first of these jobs; 0: none */
};

double queue_place(double queued_at, int64_t priority, double priority_seconds,
                   const struct queue_fair_share *fair, double share)
{
    return queued_at - (double)priority * priority_seconds +
           fair->weight * priority_seconds * share;
}

/* ---------------------------------------------------------------- creation */

static void queue_add_span(struct queue_plan *p, int64_t id, int64_t slots, double soonest,
                           double likely)
{
    const struct array arrays[] = {ARRAY(p->soonest), ARRAY(p->likely), ARRAY(p->ids)};

    if (!arrays_grow(arrays, 3, p->count, &p->capacity))
        return;
    p->ids[p->count] = id;
    p->soonest[p->count] = (struct forecast_span){slots, soonest};
    p->likely[p->count++] = (struct forecast_span){slots, likely};
}

static void queue_add_running(struct queue_plan *p, const struct queue_running *r)
{
    array_add(p->running, p->running_count, p->running_room) = *r;
    p->used += r->slots;
    if (!r->slurm)
        queue_add_span(p, r->id, r->slots, r->ends.soonest, r->ends.likely);
}

struct queue_plan *queue_plan_create(int64_t slots, const struct queue_caps *caps,
                                     const struct queue_running *running, size_t count)
{
    struct queue_plan *p = xcalloc(1, sizeof *p);

    p->magic = QUEUE_PLAN_MAGIC;
    p->slots = slots;
    if (caps)
        p->caps = *caps;
    for (size_t i = 0; i < count; i++)
        queue_add_running(p, &running[i]);
    p->first_placed = p->count;
    return p;
}

void queue_plan_destroy(struct queue_plan *p)
{
    if (!p)
        return;
    assert_object_ends(p, QUEUE_PLAN_MAGIC);
    job_hosts_clear(&p->claimed);
    free(p->running);
    free(p->soonest);
    free(p->likely);
    free(p->ids);
    free(p);
}

/* ---------------------------------------------------------------- reasons */

static void queue_words_for_slots(const struct queue_plan *p, const struct queue_waiting *job,
                                  char *reason)
{
    int by, left = 0, named = 0;
    double when = forecast_fit(p->likely, p->first_placed, p->slots, job->slots, 0, &by);
    char *to = reason, *end = reason + QUEUE_REASON_BYTES;

    to += snprintf(to, (size_t)(end - to), "waiting for %lld of %lld slots ", (long long)job->slots,
                   (long long)p->slots);
    if (isfinite(when) && by >= 0) {
        to += snprintf(to, (size_t)(end - to), "(job %lld should finish ", (long long)p->ids[by]);
        forecast_words(when, to, (size_t)(end - to));
        to += strlen(to);
        snprintf(to, (size_t)(end - to), ")");
        return;
    }
    for (size_t i = 0; i < p->running_count; i++)
        left += !p->running[i].slurm;
    to += snprintf(to, (size_t)(end - to), "(running: job%s ", left > 1 ? "s" : "");
    for (size_t i = 0; i < p->running_count && named < QUEUE_NAMED; i++) {
        if (p->running[i].slurm)
            continue;
        left--;
        const char *before = named == 0 ? "" : left > 0 && named < QUEUE_NAMED - 1 ? ", " : " and ";
        to += snprintf(to, (size_t)(end - to), "%s%lld", before, (long long)p->running[i].id);
        named++;
    }
    snprintf(to, (size_t)(end - to), ")");
}

/* ---------------------------------------------------------------- hosts */

/* Returns the slots of a host taken by running jobs, or -1 if one of them uses it exclusively. Sets
 * *by to the last such job. */
static int64_t queue_host_slots_used(const struct queue_plan *p, const char *name, int64_t *by)
{
    int64_t used = 0;

    for (size_t i = 0; i < p->running_count; i++) {
        const struct job_hosts *hosts = p->running[i].hosts;
        const struct host *there = hosts ? job_hosts_find(hosts, name) : NULL;
        if (!there)
            continue;
        *by = p->running[i].id;
        if (there->slots == 0)
            return -1;
        used += hosts->slots;
    }
    return used;
}

bool queue_plan_hosts(struct queue_plan *p, const struct queue_waiting *job,
                      const struct job_hosts *hosts, struct queue_decision *d)
{
    bool is_free = true;

    assert_object(p, QUEUE_PLAN_MAGIC);
    for (size_t i = 0; i < hosts->count && is_free; i++) {
        const struct host *h = &hosts->items[i];
        int64_t by = 0, used = queue_host_slots_used(p, h->name, &by);
        is_free = used == 0 || (used > 0 && h->slots && used + hosts->slots <= h->slots);
        if (!is_free)
            snprintf(d->reason, sizeof d->reason, "waiting for host %.150s, which job %lld uses",
                     h->name, (long long)by);
        if (job_hosts_find(&p->claimed, h->name)) {
            is_free = false;
            snprintf(d->reason, sizeof d->reason, "waiting for host %.150s, behind job %lld",
                     h->name, (long long)p->claimed_by);
        }
    }
    if (is_free)
        return true;
    for (size_t i = 0; i < hosts->count; i++) /* reserve them against later jobs */
        array_add(p->claimed.items, p->claimed.count, p->claimed_room) = hosts->items[i];
    if (!p->claimed_by)
        p->claimed_by = job->id;
    d->choice = QUEUE_WAITS;
    d->start = INFINITY;
    return false;
}

/* ---------------------------------------------------------------- one job */

static double queue_estimate(struct queue_plan *p, const struct queue_waiting *job)
{
    double from = fmax(p->last_start, fmax(job->not_before, 0));
    double start = forecast_fit(p->likely, p->count, p->slots, job->slots, from, NULL);

    p->last_start = start;
    if (isfinite(start))
        queue_add_span(p, job->id, job->slots, start + job->length.soonest,
                       start + job->length.likely);
    return start;
}

static bool queue_is_capped(const struct queue_plan *p, const struct queue_waiting *job,
                            char *reason)
{
    long long running = 0, slots = 0;

    if (!job->user)
        return false;
    for (size_t i = 0; i < p->running_count; i++) {
        const struct queue_running *r = &p->running[i];
        if (r->slurm || !r->user || strcmp(r->user, job->user) != 0)
            continue;
        running++;
        slots += r->slots;
    }
    const char *who = *job->user ? job->user : "users without a token";
    if (p->caps.running && running >= p->caps.running) {
        snprintf(reason, QUEUE_REASON_BYTES,
                 "waiting until a job of %.150s ends: %lld of %lld run (max_running_per_user)", who,
                 running, (long long)p->caps.running);
        return true;
    }
    if (!p->caps.slots || slots + job->slots <= p->caps.slots)
        return false;
    snprintf(reason, QUEUE_REASON_BYTES,
             "waiting for %lld slots of %.150s, who uses %lld of %lld (max_slots_per_user)",
             (long long)job->slots, who, slots, (long long)p->caps.slots);
    return true;
}

void queue_plan_decide(struct queue_plan *p, const struct queue_waiting *job,
                       struct queue_decision *d)
{
    bool fits = job->slots <= p->slots - p->used;

    assert_object(p, QUEUE_PLAN_MAGIC);
    *d = (struct queue_decision){.choice = QUEUE_WAITS, .start = job->not_before};
    if (job->slots > p->slots) {
        d->choice = QUEUE_NEVER_FITS;
    } else if (job->not_before > 0) {
        d->choice = QUEUE_PAUSES;
    } else if (queue_is_capped(p, job, d->reason)) {
        d->capped = true;
        d->start = INFINITY;
    } else if (fits && (!p->held_by || job->length.latest <= p->held_until)) {
        d->choice = QUEUE_STARTS;
        d->overtakes = p->held_by;
    } else if (p->held_by) {
        snprintf(d->reason, sizeof d->reason, "waiting behind job %lld", (long long)p->held_by);
        d->start = queue_estimate(p, job);
    } else {
        p->held_by = job->id;
        p->held_until = forecast_fit(p->soonest, p->count, p->slots, job->slots, 0, NULL);
        queue_words_for_slots(p, job, d->reason);
        d->start = queue_estimate(p, job);
    }
}

void queue_plan_started(struct queue_plan *p, const struct queue_waiting *job,
                        const struct job_hosts *hosts)
{
    struct queue_running r = {
        .id = job->id,
        .slots = job->slots,
        .user = job->user,
        .ends = {job->length.soonest, job->length.likely, INFINITY},
        .hosts = hosts
    };

    assert_object(p, QUEUE_PLAN_MAGIC);
    assert_always(job->slots <= p->slots - p->used); /* as decided */
    queue_add_running(p, &r);
}
