#include "daemon/job/job_act.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "daemon/job/job_active.h"
#include "daemon/job/job_replan.h"
#include "daemon/job/job_end.h"
#include "daemon/job/job_start.h"
#include "daemon/job/run_dir_remove.h"
#include "daemon/launch/stalled.h"
#include "daemon/store/event.h"
#include "daemon/store/job_change.h"

#define TRY_LATER_SECONDS 1.0

typedef int act_step(struct job_manager *m, struct active_job *a, struct error *e);

/* ---------------------------------------------------------------- states */

static int act_set_state(struct job_manager *m, const struct active_job *a, enum job_state to,
                         const char *reason, const char *by, struct error *e)
{
    struct store_state_change change = {to, reason, clock_now(), by};
    int status = store_job_set_state(m->store, a->id, &change, e);

    if (!status && to != JOB_STARTING)
        log_info("job %lld: %s: %s", (long long)a->id, job_state_name(to), reason);
    return status;
}

/* Failed outside of an attempt; what an earlier one failed for is not forgotten. */
static int act_fail(struct job_manager *m, const struct active_job *a, const char *why,
                    struct error *e)
{
    char reason[ERROR_TEXT_BYTES + FAILURE_TEXT_BYTES + 320];
    struct store_job job;
    int status = store_job_get(m->store, a->id, &job, e);

    if (status)
        return status;
    char *first = end_first_failure(&job);
    snprintf(reason, sizeof reason, "%s%s%.*s", why, first ? "; before that: " : "",
             first ? (int)failure_cause_length(first) : 0, first ? first : "");
    free(first);
    store_job_clear(&job);
    return act_set_state(m, a, JOB_FAILED, reason, NULL, e);
}

/* The daemon was started again with fewer slots than when the job was taken. */
static int act_store_unfit(struct job_manager *m, struct active_job *a, struct error *e)
{
    char reason[ERROR_TEXT_BYTES + 320];
    const char *why = a->no_start.text;

    snprintf(reason, sizeof reason,
             "needs %lld slots, but this node now has only %lld%s%s: submit it again with fewer "
             "workers, or set slots in traind.conf",
             (long long)a->slots, (long long)m->slots, *why ? "; " : "", why);
    return act_fail(m, a, reason, e);
}

static int act_store_cancelled(struct job_manager *m, struct active_job *a, struct error *e)
{
    char *by = NULL;
    int status = store_job_asked_by(m->store, a->id, a->attempt, &by, e);

    if (!status)
        status =
            act_set_state(m, a, JOB_CANCELLED, "cancelled on request before it started", by, e);
    free(by);
    return status;
}

static int act_store_back(struct job_manager *m, struct active_job *a, struct error *e)
{
    return act_set_state(m, a, JOB_QUEUED, "the daemon ended before it had launched the job", NULL,
                         e);
}

static int act_store_lost(struct job_manager *m, struct active_job *a, struct error *e)
{
    return act_fail(m, a, a->no_start.text, e);
}

static int act_store_started(struct job_manager *m, struct active_job *a, struct error *e)
{
    char reason[512];

    snprintf(reason, sizeof reason, "Slurm has started its job %lld on %s",
             (long long)a->slurm.job_id, *a->slurm.nodes ? a->slurm.nodes : "its nodes");
    return act_set_state(m, a, JOB_STARTING, reason, NULL, e);
}

static const char *act_stopping_words(const struct active_job *a)
{
    if (a->machine.phase == PHASE_IN_SLURM)
        return "being cancelled in Slurm's queue";
    return a->machine.cancel_asked || attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_CANCEL)
               ? "being cancelled: the workers end after the step they are in"
               : "at its time limit: the workers end after the step they are in, with a checkpoint";
}

static int act_say_stopping(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct store_job job;
    int status = store_job_get(m->store, a->id, &job, e);

    if (status)
        return status;
    struct store_state_change same = {job.state, act_stopping_words(a), clock_now(), NULL};
    log_info("job %lld: %s", (long long)a->id, same.reason);
    status = store_job_set_state(m->store, a->id, &same, e);
    store_job_clear(&job);
    return status;
}

/* ---------------------------------------------------------------- launchers */

static int act_follow(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct active_attempt opened;
    int status = active_open(m, a, a->attempt, &opened, e);

    if (!status)
        active_switch(m, a, &opened);
    return status;
}

static int act_open_gate(struct job_manager *m, struct active_job *a, struct error *e)
{
    if (a->start)
        return start_open_gate(m, a, e);
    slurm_release(a->process.slurm); /* another daemon's */
    return 0;
}

static int act_ask_workers(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    (void)e;
    a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_AFTER_STEP);
    return 0;
}

static int act_terminate(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    (void)e;
    if (a->machine.stop == STOP_ASKED)
        log_info("job %lld: the workers did not stop in time, %s is asked to end them",
                 (long long)a->id, a->machine.slurm ? "Slurm" : "mpirun");
    a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_NOW);
    return 0;
}

static int act_kill(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    (void)e;
    if (a->machine.stop == STOP_TERMINATED && a->machine.phase == PHASE_RUNNING)
        log_info("job %lld: its processes are killed", (long long)a->id);
    a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_KILL);
    return 0;
}

static int act_cancel_in_slurm(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    (void)e;
    slurm_cancel(a->process.slurm);
    return 0;
}

static int act_disown_in_slurm(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    if (slurm_disown(a->process.slurm))
        return 0;
    return error_set(e, ERR_CONFLICT, "job %lld has started in Slurm", (long long)a->id);
}

static int act_mark_limit(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    return attempt_flag_write(a->attempt_dir, ATTEMPT_FLAG_LIMIT, e);
}

static int act_mark_stall(struct job_manager *m, struct active_job *a, struct error *e)
{
    json_t *fields = json_pack("{s:s, s:o, s:o*, s:s*}", "message", a->stall.reason,
                               "stalled_seconds", json_integer(m->limits.stall_seconds), "rank",
                               a->stall.rank >= 0 ? json_integer(a->stall.rank) : NULL, "host",
                               *a->stall.host ? a->stall.host : NULL);
    struct error ignored;

    log_warning("job %lld is ended: %s", (long long)a->id, a->stall.reason);
    /* Told once: the folder says if it was before. */
    struct stalled before;
    if (!stalled_read(a->attempt_dir, &before) && fields &&
        store_event_add(m->store, a->id, a->attempt, "warning", fields, clock_now(), &ignored))
        manager_complain(a, "its stall was not stored", &ignored);
    json_decref(fields);
    return stalled_keep(a->attempt_dir, &a->stall, e);
}

/* ---------------------------------------------------------------- the rest */

static int act_try_later(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)a;
    (void)e;
    m->queue_next_at = fmin(m->queue_next_at, clock_monotonic() + TRY_LATER_SECONDS);
    return 0;
}

static int act_shrink(struct job_manager *m, struct active_job *a, struct error *e)
{
    int status = job_shrink(m, a->id, e);

    if (status)
        a->no_start = *e;
    m->look_at_queue = m->look_at_queue || !status;
    return status;
}

static int act_finish(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)e;
    end_finish(m, a);
    return 0;
}

static int act_forget(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)e;
    active_destroy(m, a);
    job_keep_limits(m);
    return 0;
}

/* ON_CANCEL_ASKED is not the loop's: cancel.c has its actions. */
static act_step *const act_steps[] = {
    [DO_PREPARE] = start_prepare,
    [DO_STORE_ATTEMPT] = start_store_attempt,
    [DO_START_LAUNCHER] = start_launcher,
    [DO_STORE_LAUNCHER] = start_store_launcher,
    [DO_FOLLOW] = act_follow,
    [DO_OPEN_GATE] = act_open_gate,
    [DO_ABANDON_LAUNCHER] = start_abandon,
    [DO_STORE_NO_START] = end_store_no_start,
    [DO_TRY_LATER] = act_try_later,
    [DO_SHRINK] = act_shrink,
    [DO_STORE_UNFIT] = act_store_unfit,
    [DO_STORE_CANCELLED] = act_store_cancelled,
    [DO_MARK_LIMIT] = act_mark_limit,
    [DO_MARK_STALL] = act_mark_stall,
    [DO_ASK_WORKERS] = act_ask_workers,
    [DO_TERMINATE] = act_terminate,
    [DO_KILL] = act_kill,
    [DO_SAY_STOPPING] = act_say_stopping,
    [DO_STORE_STARTED] = act_store_started,
    [DO_STORE_PUT_BACK] = end_store_put_back,
    [DO_CANCEL_IN_SLURM] = act_cancel_in_slurm,
    [DO_DISOWN_IN_SLURM] = act_disown_in_slurm,
    [DO_STORE_END] = end_store,
    [DO_FINISH] = act_finish,
    [DO_STORE_BACK] = act_store_back,
    [DO_STORE_LOST] = act_store_lost,
    [DO_FORGET] = act_forget,
};

struct acting {
    struct job_manager *m;
    struct active_job *a;
};

static int act_one(void *context, enum job_action action, struct error *e)
{
    struct acting *acting = context;
    struct active_job *a = acting->a;
    long long id = a->id;
    int status = act_steps[action](acting->m, a, e);

    if (!status)
        return 0;
    if (action >= DO_PREPARE && action <= DO_OPEN_GATE)
        a->no_start = *e;
    if (job_state_action_is_optional(action))
        log_warning("job %lld: %s", id, e->text);
    return status;
}

int job_handle(struct job_manager *m, struct active_job *a, const struct job_observation *seen,
               struct error *e)
{
    struct acting acting = {m, a};

    return job_state_machine_step(&a->machine, seen, act_one, &acting, e);
}

void job_tell(struct job_manager *m, struct active_job *a, const struct job_observation *seen)
{
    struct error e;

    job_handle(m, a, seen, &e);
}
