/* What users do over the API, on other threads than the loop's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulate/world.h"

/* Between two actions of a request anything may happen, whole rounds of the loop too. */
static void users_between(struct world *w)
{
    if (w->depth < 2 && chance_once_in(&w->chance, 3)) {
        w->depth++;
        nature_act(w);
        if (chance_of(&w->chance, 2) == 1 && w->depth == 1)
            shell_round(w);
        w->depth--;
    }
}

static int users_fail(struct error *e, enum error_code code)
{
    return error_set(e, code, "simulated");
}

struct asking {
    struct world *w;
    int id, attempt, resumed;
    struct job *job;
};

static int users_store_cancelled(struct asking *c, struct error *e)
{
    if (c->w->disk_full)
        return users_fail(e, ERR_NO_SPACE);
    bool waits = c->job->state == JOB_QUEUED && !c->job->in_slurm;
    if (c->w->defect == DEFECT_CANCEL_TAKES_ANY_STATE)
        waits = !job_state_is_final(c->job->state);
    if (!waits)
        return users_fail(e, ERR_CONFLICT);
    c->job->state = JOB_CANCELLED;
    c->job->cancelled_waiting = true;
    c->job->held = false;
    return 0;
}

static int users_store_wish(struct asking *c, struct error *e)
{
    bool under_way =
        job_state_is_active(c->job->state) || (c->job->state == JOB_QUEUED && c->job->in_slurm);

    if (c->w->disk_full)
        return users_fail(e, ERR_NO_SPACE);
    if (!under_way || c->job->attempt != c->attempt)
        return users_fail(e, ERR_CONFLICT);
    c->job->cancel_attempt = c->attempt;
    return 0;
}

static int users_act_one(void *context, enum job_action action, struct error *e)
{
    struct asking *c = context;

    users_between(c->w);
    world_trace(c->w, "a user, job %d.%d: %s", c->id, c->attempt, simulate_action_name(action));
    switch (action) {
    case DO_STORE_CANCELLED:
        return users_store_cancelled(c, e);
    case DO_STORE_CANCEL_REQUEST:
        return users_store_wish(c, e);
    case DO_MARK_CANCEL:
        if (c->w->disk_full)
            return users_fail(e, ERR_NO_SPACE);
        c->job->attempts[c->attempt].folder = true;
        c->job->attempts[c->attempt].mark_cancel = true;
        return 0;
    default: /* DO_WAKE_LOOP: it looks for the mark anyway */
        return 0;
    }
}

static void users_cancel(struct world *w, int id)
{
    struct job *job = &w->jobs[id];

    for (int tries = 0; tries < 5; tries++) {
        struct job_machine machine = job_state_machine_of(job->state, job->in_slurm);
        struct job_observation asked = {.event = ON_CANCEL_ASKED};
        bool final = job_state_is_final(job->state);
        struct asking asking = {w, id, job->attempt, job->resumed, job};
        struct error e;
        int status = simulate_step(&machine, &asked, users_act_one, &asking, &e);
        if (final || (status < 0 && e.code != ERR_CONFLICT))
            break;
        if (status > 0 && asking.resumed != job->resumed)
            return; /* resumed behind the cancellation, before it was answered */
        if (status > 0) {
            job->cancelled_at = job->cancelled_waiting ? job->attempt : asking.attempt;
            job->cancelled_since = w->now;
            return;
        }
        if (status == MACHINE_NOTHING && !final)
            world_violation(w, "job %d is not cancelled, and has not ended", id);
    }
}

static void users_resume(struct world *w, int id)
{
    struct job *job = &w->jobs[id];

    if ((job->state != JOB_FAILED && job->state != JOB_CANCELLED) || job->checkpoint == 0 ||
        w->disk_full || job->attempt > ATTEMPTS_MAX / 2)
        return;
    world_trace(w, "a user, job %d: resume", id);
    job->state = JOB_QUEUED;
    job->restarts = job->real_restarts = 0;
    job->failure[0] = job->first_cause[0] = '\0';
    job->resumes = true;
    job->resumed++;
    job->vague = false;
    job->in_slurm = false;
    job->cancel_attempt = -1;
    job->cancelled_at = -1;
    job->cancelled_waiting = false;
    job->not_before = 0;
    job->queued_at = w->now;
}

/* Holds one that waits, or releases it. */
static void users_hold(struct world *w, int id)
{
    struct job *job = &w->jobs[id];

    if (job->in_slurm || w->disk_full)
        return;
    job->held = !job->held;
    world_trace(w, "a user, job %d: %s", id, job->held ? "hold" : "release");
}

static void users_submit(struct world *w)
{
    if (w->job_count == JOBS_MAX || w->disk_full)
        return;
    struct job *job = &w->jobs[++w->job_count];
    *job = (struct job){.state = JOB_QUEUED,
                        .for_slurm = chance_of(&w->chance, 3) == 1,
                        .restarts_max = chance_of(&w->chance, 4),
                        .slots = 1 + chance_of(&w->chance, SLOTS_MAX),
                        .priority = chance_of(&w->chance, 3),
                        .user = chance_of(&w->chance, 2) ? "b" : "a",
                        .trains = chance_of(&w->chance, 5) != 1,
                        .queued_at = w->now,
                        .time_limit = chance_once_in(&w->chance, 4) ? TIME_LIMIT : NAN,
                        .cancel_attempt = -1,
                        .cancelled_at = -1};
    if (job->for_slurm)
        job->slots = 0;
    else if (w->caps.slots && job->slots > w->caps.slots)
        job->slots = w->caps.slots; /* more is refused */
    job->wanted = job->slots;
    world_trace(w, "a user, job %d: submit, %lld slots%s", w->job_count, (long long)job->slots,
                job->for_slurm ? ", for Slurm" : "");
}

void users_act(struct world *w)
{
    if (chance_of(&w->chance, 6) == 1)
        users_submit(w);
    if (w->job_count == 0)
        return;
    int id = 1 + (int)chance_of(&w->chance, (unsigned)w->job_count);
    if (chance_once_in(&w->chance, 12))
        users_cancel(w, id);
    else if (chance_once_in(&w->chance, 20))
        w->jobs[id].state == JOB_QUEUED ? users_hold(w, id) : users_resume(w, id);
}
