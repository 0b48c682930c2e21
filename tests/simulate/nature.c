/* Processes, Slurm and the disk: they get on, and fail. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulate/world.h"

static struct attempt *nature_attempt(struct world *w, const struct process *p)
{
    return &w->jobs[p->job].attempts[p->attempt];
}

bool nature_is_left(const struct process *p)
{
    return p->alive || p->ranks || p->pending;
}

int nature_start(struct world *w, int job, int attempt, bool slurm)
{
    int number = ++w->process_count;

    if (number >= (int)(sizeof w->processes / sizeof w->processes[0])) {
        w->process_count = number - 1;
        world_violation(w, "too many processes: attempts do not end");
        longjmp(w->killed, 2);
    }
    w->processes[number] =
        (struct process){.job = job, .attempt = attempt, .first_attempt = attempt, .gated = !slurm};
    return number;
}

/* The ranks of an attempt begin. */
static void nature_begin(struct world *w, struct process *p)
{
    struct attempt *a = nature_attempt(w, p);

    w->lives++;
    world_trace(w, "job %d.%d: ranks begin", p->job, p->attempt);
    a->begun++;
    a->outcome = RAN_ON;
    p->alive = p->ranks = true;
    p->began = w->now;
    p->deaf = chance_once_in(&w->chance, 20);
    p->stubborn = chance_once_in(&w->chance, 20);
    p->orphans = chance_once_in(&w->chance, 10);
    if (a->begun > 1)
        world_violation(w, "attempt %d of job %d began twice", p->attempt, p->job);
    if (w->jobs[p->job].cancelled_at >= 0 && p->attempt > w->jobs[p->job].cancelled_at)
        world_violation(w, "job %d was cancelled in attempt %d, and attempt %d begins", p->job,
                        w->jobs[p->job].cancelled_at, p->attempt);
    if (w->jobs[p->job].cancelled_waiting)
        world_violation(w, "job %d was cancelled before it ran, and runs", p->job);
}

void nature_release(struct world *w, struct process *p)
{
    p->gated = false;
    nature_begin(w, p);
}

/* The ranks end, and mpirun or the script behind them. */
static void nature_end(struct process *p, bool launcher_too)
{
    p->ranks = false;
    p->alive = p->alive && !launcher_too;
    p->hung = false;
}

void nature_ask(struct world *w, struct process *p)
{
    (void)w;
    p->asked = true;
}

void nature_terminate(struct world *w, struct process *p)
{
    (void)w;
    if (p->stubborn)
        return;
    if (p->ranks && (p->hung || p->orphans))
        p->alive = false; /* the ranks stay */
    else
        nature_end(p, true);
}

void nature_kill(struct world *w, struct process *p)
{
    (void)w;
    p->killed_launcher = p->killed_launcher || p->alive;
    p->alive = p->ranks = p->pending = p->gated = false;
}

static void nature_fail(struct world *w, struct process *p, enum outcome how)
{
    struct attempt *a = nature_attempt(w, p);
    struct job *job = &w->jobs[p->job];

    world_trace(w, "job %d.%d: %s", p->job, p->attempt,
                how == RAN_INTO_FAILURE ? "ranks fail" : "ranks die");
    a->outcome = how;
    a->own_fault = how == RAN_INTO_FAILURE && chance_once_in(&w->chance, 8);
    snprintf(a->cause, sizeof a->cause, "cause %d.%d", p->job, p->attempt);
    if (!job->first_cause[0])
        world_copy(job->first_cause, sizeof job->first_cause, a->cause);
    if (how == RAN_INTO_DEATH && p->orphans)
        p->alive = false;
    else
        nature_end(p, true);
}

static void nature_step(struct world *w, struct process *p)
{
    struct attempt *a = nature_attempt(w, p);
    struct job *job = &w->jobs[p->job];

    a->steps++;
    if (job->for_slurm && !w->slurm_up && p->deaf)
        job->cancelled_since = w->now; /* nobody can end them now */
    if (job->cancelled_at >= 0 && w->now - job->cancelled_since > TOO_LATE)
        world_violation(w, "job %d was cancelled, and runs on", p->job);
    if (!isnan(job->time_limit) && w->now - p->began > job->time_limit + TOO_LATE)
        world_violation(w, "job %d runs far beyond its time limit", p->job);
    if (job->state == JOB_STARTING)
        job->state = JOB_RUNNING; /* ingested */
    if (job->trains && chance_of(&w->chance, 3) != 0)
        job->checkpoint++;
}

/* Ranks that run: they do a step, end, fail, die, hang. */
static void nature_run(struct world *w, struct process *p)
{
    struct attempt *a = nature_attempt(w, p);

    if (!p->ranks || !p->alive || p->hung)
        return;
    if (p->asked && !p->deaf) {
        a->outcome = RAN_TO_STOP;
        nature_end(p, true);
        return;
    }
    if (w->chance.calm && w->now - w->calm_at > 3 * TIME_LIMIT) {
        a->outcome = RAN_TO_END;
        nature_end(p, true);
        return;
    }
    switch (chance_of(&w->chance, 16)) {
    case 1:
    case 2:
        a->outcome = RAN_TO_END;
        nature_end(p, true);
        break;
    case 3:
        nature_fail(w, p, RAN_INTO_FAILURE);
        break;
    case 4:
        nature_fail(w, p, RAN_INTO_DEATH);
        break;
    case 5:
        world_trace(w, "job %d.%d: ranks hang", p->job, p->attempt);
        p->hung = true;
        break;
    default:
        nature_step(w, p);
    }
}

/* ---------------------------------------------------------------- Slurm */

static bool nature_is_cancelled(const struct world *w, const struct process *p)
{
    int first = w->defect == DEFECT_MARK_OF_NEWEST_ALONE ? p->attempt : p->first_attempt;

    for (int i = first; i <= p->attempt; i++)
        if (w->jobs[p->job].attempts[i].mark_cancel)
            return true;
    return false;
}

static void nature_script(struct world *w, struct process *p, int number)
{

    p->attempt = p->first_attempt + p->restarts;
    if (p->attempt >= ATTEMPTS_MAX) {
        p->pending = false;
        return;
    }
    struct attempt *a = nature_attempt(w, p);
    p->pending = false;
    a->folder = true;
    if (nature_is_cancelled(w, p))
        return;
    if (a->owner && a->owner != number)
        return;
    a->owner = number;
    nature_begin(w, p);
}

static void nature_requeue(struct world *w, struct process *p)
{
    struct attempt *a = nature_attempt(w, p);
    struct job *job = &w->jobs[p->job];

    if (p->restarts >= 4)
        return;
    if (p->ranks) {
        a->outcome = RAN_INTO_DEATH;
        snprintf(a->cause, sizeof a->cause, "Slurm put its job back");
        job->vague = job->vague || (p->hung && !job->first_cause[0]);
        if (!job->first_cause[0])
            snprintf(job->first_cause, sizeof job->first_cause, "Slurm put");
    }
    p->alive = p->ranks = p->hung = p->asked = false;
    p->pending = true;
    p->restarts++;
    world_trace(w, "job %d.%d: put back by Slurm", p->job, p->attempt);
}

static void nature_slurm(struct world *w, int number)
{
    struct process *p = &w->processes[number];

    if (p->pending && (w->chance.calm || chance_of(&w->chance, 4) == 1))
        nature_script(w, p, number);
    else if (p->alive && chance_once_in(&w->chance, 24))
        nature_requeue(w, p);
    /* A script sees that its job is to end. */
    struct attempt *a = nature_attempt(w, p);
    if (p->alive && (nature_is_cancelled(w, p) || a->mark_limit))
        p->asked = true;
    /* Slurm's own limit: a signal, and some time later the end. */
    double over =
        isnan(w->jobs[p->job].time_limit) ? 0 : w->now - p->began - w->jobs[p->job].time_limit;
    if (p->alive && over > 0)
        p->asked = true;
    if (p->alive && over > TOO_LATE / 2)
        nature_fail(w, p, RAN_INTO_DEATH);
    /* Slurm kills what is left of a script. */
    if (!p->alive)
        p->ranks = false;
}

void nature_act(struct world *w)
{
    for (int i = 1; i <= w->process_count; i++) {
        struct process *p = &w->processes[i];
        if (!nature_is_left(p))
            continue;
        if (w->jobs[p->job].for_slurm)
            nature_slurm(w, i);
        if (w->chance.calm || chance_of(&w->chance, 2) == 1)
            nature_run(w, p);
        if (p->alive && p->hung && chance_once_in(&w->chance, 12))
            p->hung = false;
    }
    if (chance_once_in(&w->chance, 30))
        world_trace(w, "Slurm is %s", (w->slurm_up = !w->slurm_up) ? "up" : "down");
    if (chance_once_in(&w->chance, 40))
        world_trace(w, "the disk is %s", (w->disk_full = !w->disk_full) ? "full" : "well");
    if (w->chance.calm) {
        w->slurm_up = true;
        w->disk_full = false;
    }
}
