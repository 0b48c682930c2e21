/* What must hold. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulate/world.h"

void world_violation(struct world *w, const char *format, ...)
{
    va_list arguments;

    if (w->violated)
        return;
    w->violated = true;
    w->violation_kind = format;
    va_start(arguments, format);
    vsnprintf(w->violation, sizeof w->violation, format, arguments);
    va_end(arguments);
}

void world_trace(struct world *w, const char *format, ...)
{
    va_list arguments;

    if (!w->trace)
        return;
    fprintf(w->trace, "%7.0f ", w->now);
    va_start(arguments, format);
    vfprintf(w->trace, format, arguments);
    va_end(arguments);
    fputc('\n', w->trace);
}

/* Nothing runs that the store does not know, and no more than there are slots. */
static void check_process(struct world *w, int number, int64_t *slots)
{
    const struct process *p = &w->processes[number];
    const struct job *job = &w->jobs[p->job];

    if (!p->ranks && !p->gated && !p->alive)
        return;
    *slots += job->slots;
    if (p->gated)
        return;
    if (job_state_is_final(job->state))
        world_violation(w, "job %d is %s, and attempt %d of it still runs", p->job,
                        job_state_name(job->state), p->attempt);
    if (job->launcher != number)
        world_violation(w, "attempt %d of job %d runs, and the store does not know its launcher",
                        p->attempt, p->job);
    if (job->for_slurm && !job->in_slurm)
        world_violation(w, "attempt %d of job %d runs in Slurm, and the store does not know it",
                        p->attempt, p->job);
    if (!job->for_slurm && job->state == JOB_QUEUED)
        world_violation(w, "job %d is queued, and attempt %d of it runs", p->job, p->attempt);
}

void check_now(struct world *w)
{
    int64_t slots = 0;

    for (int i = 1; i <= w->process_count; i++)
        check_process(w, i, &slots);
    if (slots > SLOTS_MAX)
        world_violation(w, "%lld of %d slots are taken", (long long)slots, SLOTS_MAX);
    for (int id = 1; id <= w->job_count; id++)
        if (w->jobs[id].slots > w->jobs[id].wanted)
            world_violation(w, "job %d has grown beyond what it was submitted with", id);
        else if (w->jobs[id].restarts > w->jobs[id].restarts_max)
            world_violation(w, "job %d was restarted %lld times, and may be %lld times", id,
                            (long long)w->jobs[id].restarts, (long long)w->jobs[id].restarts_max);
}

static int64_t check_free_slots(const struct world *w, int but)
{
    int64_t slots = w->slots;

    for (int i = 0; i < JOBS_MAX; i++)
        if (w->active[i].used && w->active[i].job != but)
            slots -= w->jobs[w->active[i].job].slots;
    return slots;
}

/* A limit of its user that keeps it from starting beside what is active, but for one job. */
static bool check_is_capped(const struct world *w, int id, int but)
{
    int64_t running = 0, slots = 0;

    for (int i = 0; i < JOBS_MAX; i++) {
        const struct job *other = &w->jobs[w->active[i].job];
        if (!w->active[i].used || w->active[i].job == but || other->for_slurm ||
            strcmp(other->user, w->jobs[id].user) != 0)
            continue;
        running++;
        slots += other->slots;
    }
    return (w->caps.running && running >= w->caps.running) ||
           (w->caps.slots && slots + w->jobs[id].slots > w->caps.slots);
}

/* Whoever is before it in the queue would have started if it had its slots. */
void check_start(struct world *w, int id)
{
    const struct job *job = &w->jobs[id];

    if (job->for_slurm)
        return;
    if (check_is_capped(w, id, id))
        world_violation(w, "job %d starts, and %s has reached a limit", id, job->user);
    for (int other = 1; other <= w->job_count; other++) {
        const struct job *o = &w->jobs[other];
        if (other == id || o->for_slurm || o->state != JOB_QUEUED || o->held ||
            o->not_before > w->now || shell_has(w, other) || o->listed != w->looks ||
            o->tried == w->looks || !shell_is_before(w, other, id) || w->depth)
            continue;
        if (o->slots <= check_free_slots(w, id) && !check_is_capped(w, other, id))
            world_violation(w, "job %d starts, and job %d before it has its slots", id, other);
    }
}

/* It would start again at once, before all that wait, as large as it was submitted. */
void check_growth(struct world *w, int id)
{
    const struct job *job = &w->jobs[id];

    if (job->wanted > check_free_slots(w, id))
        world_violation(w, "job %d is stopped to grow, and others use the slots", id);
    if (check_is_capped(w, id, id))
        world_violation(w, "job %d is stopped to grow, and %s has reached a limit", id, job->user);
    for (int other = 1; other <= w->job_count; other++)
        if (w->jobs[other].state == JOB_QUEUED && !w->jobs[other].for_slurm &&
            !w->jobs[other].held && !shell_has(w, other) && shell_is_before(w, other, id))
            world_violation(w, "job %d is stopped to grow, and job %d waits before it", id, other);
}

/* A user, a time limit or Slurm. */
static bool check_was_asked(const struct job *job)
{
    return job->for_slurm || job->cancelled_waiting || job->cancelled_at >= 0 ||
           job->cancel_attempt >= 0 || !isnan(job->time_limit);
}

static bool check_is_first_cause(const struct job *job)
{
    return job->vague || !job->first_cause[0] || strstr(job->reason, job->first_cause);
}

void check_end(struct world *w)
{
    check_now(w);
    for (int id = 1; id <= w->job_count; id++) {
        const struct job *job = &w->jobs[id];
        if (!job_state_is_final(job->state))
            world_violation(w, "job %d is %s for ever", id, job_state_name(job->state));
        else if (job->state == JOB_CANCELLED && !check_was_asked(job))
            world_violation(w, "job %d is cancelled, and nobody wanted that", id);
        else if (job->cancelled_at >= 0 && job->attempt > job->cancelled_at)
            world_violation(w, "job %d was cancelled in attempt %d, and went on", id,
                            job->cancelled_at);
        else if (job->state == JOB_FAILED && job->real_restarts && !check_is_first_cause(job))
            world_violation(w, "job %d: \"%s\" does not name the first cause, %s", id, job->reason,
                            job->first_cause);
    }
    for (int i = 1; i <= w->process_count; i++)
        if (nature_is_left(&w->processes[i]) && !w->processes[i].gated)
            world_violation(w, "something of job %d is left over", w->processes[i].job);
}
