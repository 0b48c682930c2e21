/* The daemon around the core, as daemon/job/job_{run,run_watch,queue,recover}.c are around it: what
 * it knows is gone when it is killed, which may happen before each action. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/job/job_queue_plan.h"
#include "tests/simulate/world.h"

#define GRACE_SECONDS   10
#define RESTART_SECONDS 5
#define RUN_SECONDS     100 /* that a job is thought to run, at most */

struct acting {
    struct world *w;
    struct active *a;
    const struct job_observation *seen;
};

typedef int shell_step(struct world *w, struct active *a, struct error *e);

static struct job *shell_job(struct world *w, const struct active *a)
{
    return &w->jobs[a->job];
}

static struct attempt *shell_attempt(struct world *w, const struct active *a)
{
    return &w->jobs[a->job].attempts[a->attempt];
}

static struct process *shell_process(struct world *w, const struct active *a)
{
    return &w->processes[a->process];
}

static int shell_no_space(struct error *e)
{
    return error_set(e, ERR_NO_SPACE, "the disk is full");
}

void shell_forget_all(struct world *w)
{
    queue_plan_destroy(w->plan);
    w->plan = NULL;
    for (int i = 0; i < JOBS_MAX; i++) {
        struct active *a = &w->active[i];
        struct process *p = shell_process(w, a);
        if (a->used && a->process && p->gated)
            nature_kill(w, p); /* its gate closes */
        *a = (struct active){0};
    }
}

static struct active *shell_create(struct world *w, int id, enum job_phase phase)
{
    struct job *job = &w->jobs[id];

    for (int i = 0; i < JOBS_MAX; i++) {
        struct active *a = &w->active[i];
        if (a->used)
            continue;
        *a = (struct active){.used = true, .job = id, .attempt = job->attempt, .ends = INFINITY};
        a->machine = (struct job_machine){.phase = phase,
                                          .slurm = job->for_slurm,
                                          .resumes = job->resumes,
                                          .may_have_run = job->state != JOB_QUEUED,
                                          .cancel_asked = phase == PHASE_LOST &&
                                                          job->cancel_attempt == job->attempt,
                                          .due = INFINITY,
                                          .limit_at = INFINITY,
                                          .limit_seconds = job->time_limit};
        return a;
    }
    world_violation(w, "the loop has more jobs than there are");
    longjmp(w->killed, 2);
}

/* Before each action users and nature may act, and the daemon may be killed. */
static void shell_between(struct world *w)
{
    check_now(w);
    if (w->depth < 2 && chance_once_in(&w->chance, 12)) {
        w->depth++;
        nature_act(w);
        users_act(w);
        w->depth--;
    }
    if (w->may_kill && w->depth == 0 && chance_once_in(&w->chance, 120))
        longjmp(w->killed, 1);
}

/* ---------------------------------------------------------------- a start */

static int shell_prepare(struct world *w, struct active *a, struct error *e)
{
    (void)a;
    if (w->disk_full)
        return shell_no_space(e);
    if (chance_once_in(&w->chance, 100))
        return error_set(e, ERR_NOT_FOUND, "mpirun is not installed");
    return 0;
}

static int shell_store_attempt(struct world *w, struct active *a, struct error *e)
{
    struct job *job = shell_job(w, a);

    if (w->disk_full)
        return shell_no_space(e);
    if (job->state != JOB_QUEUED)
        return error_set(e, ERR_CONFLICT, "it is not queued any more");
    if (job->held && w->defect != DEFECT_HELD_AFTER_THE_LOOK)
        return error_set(e, ERR_CONFLICT, "it is held");
    if (job->held)
        world_violation(w, "job %d starts, and is held", a->job);
    check_start(w, a->job);
    for (int i = job->attempt + 1; i < ATTEMPTS_MAX; i++)
        if (job->attempts[i].folder)
            job->attempt = i; /* Slurm began it, and traind never came to know */
    if (job->attempt + 1 >= ATTEMPTS_MAX) {
        world_violation(w, "job %d is tried for ever", a->job);
        longjmp(w->killed, 2);
    }
    job->state = job->for_slurm ? JOB_QUEUED : JOB_STARTING;
    job->launcher = 0;
    job->not_before = 0;
    a->attempt = ++job->attempt;
    return 0;
}

static int shell_start_launcher(struct world *w, struct active *a, struct error *e)
{
    if (w->disk_full)
        return shell_no_space(e);
    shell_attempt(w, a)->folder = true;
    a->process = nature_start(w, a->job, a->attempt, a->machine.slurm);
    a->held = a->silent = a->machine.slurm;
    return 0;
}

static int shell_store_launcher(struct world *w, struct active *a, struct error *e)
{
    struct job *job = shell_job(w, a);

    if (w->disk_full)
        return shell_no_space(e);
    if (w->defect != DEFECT_SLURM_GETS_IT_ANYWAY && a->machine.slurm &&
        (job->state != JOB_QUEUED || job->attempt != a->attempt))
        return error_set(e, ERR_CONFLICT, "it was cancelled");
    if (a->machine.slurm) {
        job->in_slurm = true;
        job->first_attempt = a->attempt;
    }
    job->launcher = a->process;
    return 0;
}

static int shell_follow(struct world *w, struct active *a, struct error *e)
{
    if (w->disk_full && !shell_attempt(w, a)->folder)
        return shell_no_space(e);
    shell_attempt(w, a)->folder = true;
    return 0;
}

static int shell_open_gate(struct world *w, struct active *a, struct error *e)
{
    (void)e;
    if (a->machine.slurm)
        a->held = false;
    else
        nature_release(w, shell_process(w, a));
    a->ends = w->now + RUN_SECONDS;
    return 0;
}

static int shell_abandon(struct world *w, struct active *a, struct error *e)
{
    (void)e;
    if (a->process)
        nature_kill(w, shell_process(w, a));
    a->process = 0;
    return 0;
}

/* ---------------------------------------------------------------- an end */

static enum failure_stop shell_why(struct world *w, const struct active *a)
{
    const struct attempt *at = shell_attempt(w, a);

    if (a->machine.cancel_asked || a->machine.stop_why == FAILURE_CANCELLED || at->mark_cancel)
        return FAILURE_CANCELLED;
    if (a->machine.stop_why == FAILURE_STALLED || at->mark_stall)
        return FAILURE_STALLED;
    if (a->machine.stop_why == FAILURE_TIME_LIMIT || at->mark_limit)
        return FAILURE_TIME_LIMIT;
    bool grows = w->defect == DEFECT_GROWTH_IS_FORGOTTEN ? a->machine.stop_why == FAILURE_GROWS
                                                         : at->mark_grow;
    return grows ? FAILURE_GROWS : FAILURE_NOT_STOPPED;
}

/* As failure_judge does, by what is left of the attempt. */
static void shell_judge(struct world *w, struct active *a)
{
    const struct attempt *at = shell_attempt(w, a);
    enum failure_stop why = shell_why(w, a);
    struct verdict *v = &a->verdict;

    *v = (struct verdict){.state = JOB_FAILED, .step = at->steps};
    if (at->outcome == RAN_TO_END) {
        v->state = JOB_SUCCEEDED;
    } else if (why == FAILURE_STALLED) {
        v->outside = true;
        snprintf(v->reason, sizeof v->reason, "stalled");
    } else if ((why && !(why == FAILURE_GROWS && at->outcome == RAN_INTO_FAILURE)) ||
               at->outcome == RAN_TO_STOP) {
        v->state = JOB_CANCELLED;
        v->grows = v->goes_on = why == FAILURE_GROWS;
    } else if (at->outcome == RAN_INTO_FAILURE || at->outcome == RAN_INTO_DEATH) {
        v->own_fault = at->own_fault;
        world_copy(v->reason, sizeof v->reason, at->cause);
    } else if (at->outcome == RAN_NOT && a->machine.slurm) {
        snprintf(v->reason, sizeof v->reason, "Slurm's job ended before a worker said anything");
    } else if (at->outcome == RAN_NOT) {
        v->state = JOB_QUEUED;
    } else {
        snprintf(v->reason, sizeof v->reason, "its ranks died without a word");
    }
}

static int shell_store_verdict(struct world *w, struct active *a, bool put_back, struct error *e)
{
    struct job *job = shell_job(w, a);
    struct attempt_history history = {.restarts = job->restarts,
                                      .restarts_max = job->restarts_max,
                                      .restart_delay_seconds = RESTART_SECONDS,
                                      .checkpoint = job->checkpoint,
                                      .trains = job->trains,
                                      .ran = true,
                                      .resumes = job->resumes,
                                      .keeps_slurm = put_back,
                                      .first_failure = job->failure};
    struct attempt_outcome end;

    if (w->disk_full)
        return shell_no_space(e);
    job_state_after_attempt(&a->verdict, &history, &end);
    end.restarts = end.restarts || (a->verdict.grows && w->defect == DEFECT_GROWTH_IS_A_RESTART);
    if (w->defect != DEFECT_WISH_IS_LOST && end.to == JOB_QUEUED &&
        job->cancel_attempt == job->attempt)
        return error_set(e, ERR_CONFLICT, "it was asked to be cancelled");
    if (job_state_is_final(job->state))
        return error_set(e, ERR_CONFLICT, "it has ended");
    if (end.failed && !job->failure[0])
        world_copy(job->failure, sizeof job->failure, a->verdict.reason);
    if (end.failed && !job->first_cause[0]) /* not seen by nature: a start, Slurm */
        world_copy(job->first_cause, sizeof job->first_cause, a->verdict.reason);
    job->state = end.to;
    world_copy(job->reason, sizeof job->reason, end.reason);
    if (end.restarts || end.goes_on) {
        job->restarts += end.restarts;
        job->real_restarts += end.restarts;
        job->resumes = end.resumes && job->checkpoint > 0;
        job->not_before = end.pause_seconds > 0 ? w->now + end.pause_seconds : 0;
        job->in_slurm = job->in_slurm && put_back;
    }
    if (end.restarts && job->resumes && job->slots > 1 && chance_of(&w->chance, 3) == 1)
        job->slots--; /* a host does not answer */
    if (put_back && end.to == JOB_QUEUED && w->defect == DEFECT_PUT_BACK_IN_TWO) {
        job->in_slurm = false;
        shell_between(w);
        job->in_slurm = true;
    }
    if (put_back && end.to == JOB_QUEUED)
        a->attempt = ++job->attempt;
    return 0;
}

/* In a transaction of its own: a daemon that is killed before it leaves the job as it is. */
static void shell_grow(struct world *w, struct active *a)
{
    struct job *job = shell_job(w, a);

    shell_between(w);
    if (job->state != JOB_QUEUED || w->disk_full || chance_once_in(&w->chance, 6))
        return; /* it cannot be planned again */
    job->slots = job->wanted;
    w->grown++;
}

static int shell_store_end(struct world *w, struct active *a, struct error *e)
{
    struct job *job = shell_job(w, a);
    int64_t before = job->restarts;

    if (!a->judged)
        shell_judge(w, a);
    int status = shell_store_verdict(w, a, false, e);
    if (status || !a->verdict.grows)
        return status;
    job->vague = job->vague || shell_attempt(w, a)->outcome == RAN_INTO_DEATH;
    if (job->state != JOB_QUEUED || job->restarts != before)
        world_violation(w, "job %d was stopped to grow, and that counts", a->job);
    shell_grow(w, a);
    return 0;
}

static int shell_store_no_start(struct world *w, struct active *a, struct error *e)
{
    bool passing = a->no_start.code == ERR_NO_SPACE;

    a->verdict = (struct verdict){.state = JOB_FAILED, .outside = passing, .own_fault = !passing};
    world_copy(a->verdict.reason, sizeof a->verdict.reason, a->no_start.text);
    return shell_store_verdict(w, a, false, e);
}

static int shell_store_put_back(struct world *w, struct active *a, struct error *e)
{
    int status = a->attempt + 1 < ATTEMPTS_MAX ? shell_store_verdict(w, a, true, e)
                                               : error_set(e, ERR_INTERNAL, "too many attempts");
    a->judged = false;
    return status;
}

/* ---------------------------------------------------------------- the other actions */

static int shell_set_state(struct world *w, struct active *a, enum job_state to, struct error *e)
{
    struct job *job = shell_job(w, a);

    if (w->disk_full)
        return shell_no_space(e);
    if (job->state != to && !job_state_leads_to(job->state, to))
        return error_set(e, ERR_CONFLICT, "not from this state");
    if (job_state_is_active(job->state) && to == JOB_QUEUED && job->cancel_attempt == job->attempt)
        return error_set(e, ERR_CONFLICT, "it was asked to be cancelled");
    job->state = to;
    return 0;
}

static int shell_store_cancelled(struct world *w, struct active *a, struct error *e)
{
    return shell_set_state(w, a, JOB_CANCELLED, e);
}

static int shell_store_back(struct world *w, struct active *a, struct error *e)
{
    return shell_set_state(w, a, JOB_QUEUED, e);
}

static int shell_store_failed(struct world *w, struct active *a, struct error *e)
{
    struct job *job = shell_job(w, a);
    int status = shell_set_state(w, a, JOB_FAILED, e);

    char before[FAILURE_TEXT_BYTES];
    memcpy(before, job->failure, sizeof before);
    if (!status)
        snprintf(job->reason, sizeof job->reason, "cannot be; before that: %s", before);
    return status;
}

static int shell_store_started(struct world *w, struct active *a, struct error *e)
{
    return shell_set_state(w, a, JOB_STARTING, e);
}

static int shell_mark_limit(struct world *w, struct active *a, struct error *e)
{
    if (w->disk_full)
        return shell_no_space(e);
    shell_attempt(w, a)->mark_limit = true;
    return 0;
}

static int shell_mark_stall(struct world *w, struct active *a, struct error *e)
{
    struct job *job = shell_job(w, a);

    if (!job->first_cause[0])
        snprintf(job->first_cause, sizeof job->first_cause, "stalled");
    job->vague = job->vague || w->disk_full; /* the next daemon will not know */
    if (w->disk_full)
        return shell_no_space(e);
    shell_attempt(w, a)->mark_stall = true;
    return 0;
}

static int shell_mark_grow(struct world *w, struct active *a, struct error *e)
{
    if (w->disk_full)
        return shell_no_space(e);
    shell_attempt(w, a)->mark_grow = true;
    return 0;
}

static bool shell_slurm_has_begun(struct world *w, const struct active *a)
{
    return shell_process(w, a)->alive;
}

static int shell_ask_workers(struct world *w, struct active *a, struct error *e)
{
    (void)e;
    if (!a->machine.slurm)
        nature_ask(w, shell_process(w, a));
    else if (!shell_slurm_has_begun(w, a))
        a->cancel = true;
    return 0;
}

static int shell_terminate(struct world *w, struct active *a, struct error *e)
{
    (void)e;
    if (a->machine.slurm)
        a->cancel = true;
    else
        nature_terminate(w, shell_process(w, a));
    return 0;
}

static int shell_kill(struct world *w, struct active *a, struct error *e)
{
    (void)e;
    if (a->machine.slurm)
        a->cancel = true;
    else if (a->process)
        nature_kill(w, shell_process(w, a));
    return 0;
}

static int shell_cancel_in_slurm(struct world *w, struct active *a, struct error *e)
{
    (void)w;
    (void)e;
    a->cancel = true;
    return 0;
}

static int shell_disown(struct world *w, struct active *a, struct error *e)
{
    if (shell_attempt(w, a)->owner)
        return error_set(e, ERR_CONFLICT, "it has started");
    /* It is cancelled there when Slurm answers, and its script would end at once. */
    shell_process(w, a)->pending = false;
    a->ended_there = true;
    return 0;
}

static int shell_shrink(struct world *w, struct active *a, struct error *e)
{
    if (w->disk_full || chance_once_in(&w->chance, 3))
        return error_set(e, ERR_INVALID, "it cannot be planned again");
    shell_job(w, a)->slots = w->slots;
    return 0;
}

static int shell_nothing(struct world *w, struct active *a, struct error *e)
{
    (void)w;
    (void)a;
    (void)e;
    return 0;
}

static int shell_forget(struct world *w, struct active *a, struct error *e)
{
    (void)w;
    (void)e;
    *a = (struct active){0};
    return 0;
}

static shell_step *const shell_steps[] = {
    [DO_PREPARE] = shell_prepare,
    [DO_STORE_ATTEMPT] = shell_store_attempt,
    [DO_START_LAUNCHER] = shell_start_launcher,
    [DO_STORE_LAUNCHER] = shell_store_launcher,
    [DO_FOLLOW] = shell_follow,
    [DO_OPEN_GATE] = shell_open_gate,
    [DO_ABANDON_LAUNCHER] = shell_abandon,
    [DO_STORE_NO_START] = shell_store_no_start,
    [DO_TRY_LATER] = shell_nothing,
    [DO_SHRINK] = shell_shrink,
    [DO_STORE_UNFIT] = shell_store_failed,
    [DO_STORE_CANCELLED] = shell_store_cancelled,
    [DO_MARK_LIMIT] = shell_mark_limit,
    [DO_MARK_STALL] = shell_mark_stall,
    [DO_MARK_GROW] = shell_mark_grow,
    [DO_ASK_WORKERS] = shell_ask_workers,
    [DO_TERMINATE] = shell_terminate,
    [DO_KILL] = shell_kill,
    [DO_STORE_STOPPING] = shell_nothing,
    [DO_STORE_STARTED] = shell_store_started,
    [DO_STORE_PUT_BACK] = shell_store_put_back,
    [DO_CANCEL_IN_SLURM] = shell_cancel_in_slurm,
    [DO_DISOWN_IN_SLURM] = shell_disown,
    [DO_STORE_END] = shell_store_end,
    [DO_FINISH] = shell_nothing,
    [DO_STORE_BACK] = shell_store_back,
    [DO_STORE_LOST] = shell_store_failed,
    [DO_FORGET] = shell_forget,
};

static int shell_act(void *context, enum job_action action, struct error *e)
{
    struct acting *acting = context;
    struct active *a = acting->a;

    shell_between(acting->w);
    *e = (struct error){0};
    int id = a->job, attempt = a->attempt;
    int status = shell_steps[action](acting->w, a, e);
    world_trace(acting->w, "job %d.%d: %s%s%s", id, attempt, simulate_action_name(action),
                status ? ": " : "", status ? e->text : "");
    if (status && action >= DO_PREPARE && action <= DO_OPEN_GATE)
        a->no_start = *e;
    return status;
}

static int shell_tell(struct world *w, struct active *a, enum job_observed event)
{
    struct job_observation seen = {.event = event,
                                   .now = w->now,
                                   .grace_seconds = GRACE_SECONDS,
                                   .killed = a->process && shell_process(w, a)->killed_launcher};
    struct acting acting = {w, a, &seen};
    struct error e;

    if (event == ON_FOUND_ALIVE || event == ON_SLURM_STARTED)
        seen.ran_seconds = w->now - shell_process(w, a)->began;
    if (event == ON_SLURM_PUT_BACK) {
        struct attempt_history h = {.restarts = shell_job(w, a)->restarts,
                                    .restarts_max = shell_job(w, a)->restarts_max,
                                    .keeps_slurm = true};
        struct attempt_outcome end;
        job_state_after_attempt(&a->verdict, &h, &end);
        seen.last = end.to != JOB_QUEUED;
    }
    return simulate_step(&a->machine, &seen, shell_act, &acting, &e);
}

static bool shell_is_under_way(const struct active *a)
{
    return a->used && (a->machine.phase == PHASE_RUNNING || a->machine.phase == PHASE_IN_SLURM);
}

/* ---------------------------------------------------------------- Slurm */

/* The thread that speaks with Slurm. */
static void shell_speak_with_slurm(struct world *w, struct active *a)
{
    struct process *p = shell_process(w, a);

    if (a->held || a->ended_there)
        return;
    if (!w->slurm_up) {
        a->silent = true;
        return;
    }
    if (!a->known && a->cancel && !p->submitted) {
        a->silent = true; /* it is not submitted any more */
    } else if (!a->known && p->submitted) {
        a->known = true; /* its name is found */
        a->silent = false;
    } else if (!a->known) {
        p->submitted = p->pending = true;
        a->known = !chance_once_in(&w->chance, 6); /* else the answer is lost */
        a->silent = !a->known;
    } else {
        a->silent = false;
        if (a->cancel)
            nature_kill(w, p);
        a->ended_there = !nature_is_left(p);
    }
}

static void shell_judge_put_back(struct world *w, struct active *a)
{
    const struct attempt *at = shell_attempt(w, a);

    shell_judge(w, a);
    if (at->outcome == RAN_TO_END || at->mark_stall)
        return;
    a->verdict.state = JOB_FAILED;
    a->verdict.outside = true;
    a->verdict.own_fault = false;
    a->verdict.goes_on = !at->owner;
    snprintf(a->verdict.reason, sizeof a->verdict.reason, "Slurm put its job back");
}

/* False: the job is forgotten. */
static bool shell_watch_slurm(struct world *w, struct active *a)
{
    struct process *p = shell_process(w, a);

    shell_speak_with_slurm(w, a);
    if (a->known && !a->silent && a->attempt < p->first_attempt + p->restarts) {
        shell_judge_put_back(w, a);
        a->judged = true;
        if (shell_tell(w, a, ON_SLURM_PUT_BACK) == MACHINE_GONE)
            return false;
        a->judged = a->judged && a->machine.phase == PHASE_CLEARING;
    }
    if (!shell_is_under_way(a))
        return true;
    if (a->machine.phase == PHASE_IN_SLURM && (p->alive || shell_attempt(w, a)->begun))
        shell_tell(w, a, ON_SLURM_STARTED);
    if (a->ended_there)
        shell_tell(w, a, ON_LAUNCHER_ENDED);
    else if (a->silent && a->machine.stop != STOP_NONE) {
        a->machine.may_have_run = shell_attempt(w, a)->owner != 0;
        shell_tell(w, a, ON_SLURM_SILENT);
    }
    return true;
}

/* ---------------------------------------------------------------- the queue */

bool shell_is_before(const struct world *w, int one, int other)
{
    const struct job *x = &w->jobs[one], *y = &w->jobs[other];
    double a = queue_place(x->queued_at, x->priority, 20, &w->fair, w->share[x->user[0] == 'b']);
    double b = queue_place(y->queued_at, y->priority, 20, &w->fair, w->share[y->user[0] == 'b']);

    return a < b || (a == b && one < other);
}

static int shell_queue(struct world *w, bool slurm, int ids[JOBS_MAX])
{
    int count = 0;

    w->looks++;
    for (int id = 1; id <= w->job_count; id++) {
        struct job *job = &w->jobs[id];
        if (job->state != JOB_QUEUED || job->for_slurm != slurm || job->in_slurm || job->held)
            continue;
        int at = count++;
        job->listed = w->looks;
        for (; at > 0 && shell_is_before(w, id, ids[at - 1]); at--)
            ids[at] = ids[at - 1];
        ids[at] = id;
    }
    return count;
}

bool shell_has(const struct world *w, int id)
{
    for (int i = 0; i < JOBS_MAX; i++)
        if (w->active[i].used && w->active[i].job == id)
            return true;
    return false;
}

static struct queue_plan *shell_plan(struct world *w, const struct active *but)
{
    struct queue_running running[JOBS_MAX];
    size_t count = 0;

    for (int i = 0; i < JOBS_MAX; i++) {
        const struct active *a = &w->active[i];
        if (a->used && a != but)
            running[count++] = (struct queue_running){
                .id = a->job,
                .slots = w->jobs[a->job].slots,
                .slurm = a->machine.slurm,
                .user = w->jobs[a->job].user,
                .ends = {0, fmax(a->ends - w->now, 0) / 2, fmax(a->ends - w->now, 0)}
            };
    }
    return queue_plan_create(w->slots, &w->caps, running, count);
}

/* ---------------------------------------------------------------- a round of the loop */

static bool shell_would_start(struct world *w, const struct active *a)
{
    const struct job *job = &w->jobs[a->job];
    struct queue_waiting waiting = {
        .id = a->job,
        .slots = job->wanted,
        .user = job->user,
        .length = {0, RUN_SECONDS / 2, RUN_SECONDS}
    };
    struct queue_plan *plan = shell_plan(w, a);
    struct queue_decision d;
    int ids[JOBS_MAX], count = shell_queue(w, false, ids);

    queue_plan_decide(plan, &waiting, &d);
    queue_plan_destroy(plan);
    return d.choice == QUEUE_STARTS && (count == 0 || shell_is_before(w, a->job, ids[0]) ||
                                        w->defect == DEFECT_GROWTH_OVERTAKES);
}

static void shell_watch_growth(struct world *w, struct active *a)
{
    const struct job *job = shell_job(w, a);

    if (!shell_attempt(w, a)->mark_grow) {
        if (chance_of(&w->chance, 3) != 1 || !shell_would_start(w, a))
            return;
        check_growth(w, a->job);
    }
    if (shell_tell(w, a, ON_MAY_GROW) == MACHINE_NOTHING)
        world_violation(w, "job %d may grow to %lld slots, and is not asked to stop", a->job,
                        (long long)job->wanted);
}

static void shell_watch_under_way(struct world *w, struct active *a)
{
    if (a->machine.slurm && !shell_watch_slurm(w, a))
        return;
    if (!shell_is_under_way(a))
        return;
    if (!a->machine.slurm && !shell_process(w, a)->alive)
        shell_tell(w, a, ON_LAUNCHER_ENDED);
    if (shell_is_under_way(a) && a->machine.stop == STOP_NONE &&
        (a->machine.cancel_asked || shell_attempt(w, a)->mark_cancel))
        shell_tell(w, a, ON_CANCEL_SEEN);
    if (a->used && a->machine.phase == PHASE_RUNNING && a->machine.stop == STOP_NONE &&
        shell_job(w, a)->slots < shell_job(w, a)->wanted)
        shell_watch_growth(w, a);
    if (shell_is_under_way(a) && w->now >= a->machine.due) {
        shell_tell(w, a, ON_TIME_PASSED);
        if (shell_is_under_way(a) && w->now >= a->machine.due)
            world_violation(w, "the loop does not sleep for job %d", a->job);
    }
    if (shell_is_under_way(a) && a->machine.phase == PHASE_RUNNING && shell_process(w, a)->hung &&
        shell_process(w, a)->attempt == a->attempt &&
        (w->chance.calm || chance_of(&w->chance, 6) == 1))
        shell_tell(w, a, ON_STALLED);
}

static void shell_watch(struct world *w, struct active *a)
{
    if (shell_is_under_way(a))
        shell_watch_under_way(w, a);
    if (!a->used || shell_is_under_way(a))
        return;
    if (a->machine.slurm && !a->ended_there && !a->machine.never_started)
        shell_speak_with_slurm(w, a);
    bool left = !a->machine.never_started && a->process &&
                (a->machine.slurm ? !a->ended_there : nature_is_left(shell_process(w, a)));
    shell_tell(w, a, left ? ON_PROCESSES_LEFT : ON_NOTHING_LEFT);
}

static void shell_start_job(struct world *w, int id)
{
    w->jobs[id].tried = w->looks;
    shell_tell(w, shell_create(w, id, PHASE_WAITING), ON_MAY_START);
}

/* True: it has become smaller. */
static bool shell_refuse(struct world *w, int id)
{
    struct active *a = shell_create(w, id, PHASE_WAITING);

    shell_tell(w, a, ON_NEVER_FITS);
    bool smaller = a->machine.phase == PHASE_WAITING;
    shell_forget(w, a, NULL);
    return smaller;
}

static void shell_start_local(struct world *w)
{
    int ids[JOBS_MAX], waiting = shell_queue(w, false, ids);

    w->plan = shell_plan(w, NULL);
    for (int i = 0; i < waiting; i++) {
        struct job *job = &w->jobs[ids[i]];
        struct queue_waiting job_waiting = {
            .id = ids[i],
            .slots = job->slots,
            .user = job->user,
            .not_before = job->not_before - w->now,
            .length = {0, RUN_SECONDS / 2, RUN_SECONDS}
        };
        struct queue_decision d;
        if (job->state != JOB_QUEUED ||
            (shell_has(w, ids[i]) && w->defect != DEFECT_QUEUE_STARTS_TWICE))
            continue;
        queue_plan_decide(w->plan, &job_waiting, &d);
        if (d.choice == QUEUE_NEVER_FITS && shell_refuse(w, ids[i]))
            break;
        if (d.choice != QUEUE_STARTS)
            continue;
        shell_start_job(w, ids[i]);
        if (shell_has(w, ids[i]))
            queue_plan_started(w->plan, &job_waiting, NULL);
    }
    queue_plan_destroy(w->plan);
    w->plan = NULL;
}

void shell_round(struct world *w)
{
    int ids[JOBS_MAX];

    for (int i = 0; i < JOBS_MAX; i++)
        if (w->active[i].used)
            shell_watch(w, &w->active[i]);
    int count = shell_queue(w, true, ids);
    for (int i = 0; i < count; i++)
        if (w->jobs[ids[i]].not_before <= w->now && !shell_has(w, ids[i]))
            shell_start_job(w, ids[i]);
    shell_start_local(w);
}

/* ---------------------------------------------------------------- another daemon */

static void shell_recover(struct world *w, int id)
{
    struct job *job = &w->jobs[id];
    struct process *p = &w->processes[job->launcher];
    struct job_found found = {.slurm = job->in_slurm,
                              .launched = job->launcher > 0,
                              .alive = job->launcher > 0 && p->alive};
    found.missing = !found.alive && chance_once_in(&w->chance, 30);
    found.foreign = !found.slurm && !nature_is_left(p) && chance_once_in(&w->chance, 30);
    struct active *a = shell_create(w, id, PHASE_LOST);
    enum job_observed event = job_state_found_event(&found);

    a->process = job->launcher;
    a->silent = true;
    a->held = true;
    if (shell_tell(w, a, event) < 0)
        shell_forget(w, a, NULL); /* the daemon ends with an error, and is started again */
}

void shell_start(struct world *w)
{
    for (int id = 1; id <= w->job_count; id++) {
        const struct job *job = &w->jobs[id];
        if ((job_state_is_active(job->state) || (job->state == JOB_QUEUED && job->in_slurm)) &&
            !shell_has(w, id))
            shell_recover(w, id);
    }
}
