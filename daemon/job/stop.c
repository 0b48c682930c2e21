/*
 * How an attempt is brought to its end before it is done, on request or at its time limit: the
 * workers are asked to stop after their step, with a checkpoint; then mpirun is told to end them;
 * then all that is left is killed. What was begun is found again by the next daemon: a request is a
 * file (cancel.c), and so is a time limit that was reached.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "daemon/job/manager.h"
#include "daemon/launch/stalled.h"

#define TERM_SECONDS       3 /* mpirun kills its ranks one second behind SIGTERM and then cleans up */
#define GRACE_STEPS        3 /* the one they are in, and a checkpoint */
#define LOOK_SECONDS       10
#define STALL_LOOK_SECONDS 2
#define AT_LIMIT           "time-limit-reached"

static bool has_reached_limit(const struct active_job *a)
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof path, "%s/" AT_LIMIT, a->attempt_dir) < sizeof path &&
           access(path, F_OK) == 0;
}

enum failure_stop stop_why(const struct active_job *a)
{
    struct stalled stall;

    if (a->stop_why == FAILURE_CANCELLED || cancel_is_requested(a->attempt_dir))
        return FAILURE_CANCELLED;
    if (a->stop_why == FAILURE_STALLED || stalled_read(a->attempt_dir, &stall))
        return FAILURE_STALLED;
    return a->stop_why == FAILURE_TIME_LIMIT || has_reached_limit(a) ? FAILURE_TIME_LIMIT
                                                                     : FAILURE_NOT_STOPPED;
}

double stop_grace(const struct job_limits *limits, const struct store_job *job)
{
    double step = job->images_per_sec > 0 && job->global_batch > 0
                      ? (double)job->global_batch / job->images_per_sec
                      : 0;
    return fmax(limits->cancel_grace_seconds, GRACE_STEPS * step);
}

static void say_stopping(struct job_manager *m, const struct store_job *job, enum failure_stop why)
{
    struct error e;
    struct store_state_change same = {
        job->state,
        job->state == JOB_QUEUED ? "being cancelled in Slurm's queue"
        : why == FAILURE_CANCELLED
            ? "being cancelled: the workers end after the step they are in"
            : "at its time limit: the workers end after the step they are in, with a checkpoint",
        clock_now(), NULL};
    if (store_job_set_state(m->store, job->id, &same, &e))
        log_warning("job %lld: %s", (long long)job->id, e.text);
}

void stop_begin(struct job_manager *m, struct active_job *a, enum failure_stop why)
{
    struct store_job job = {0};
    struct error e;

    if (a->stop != STOP_NONE || a->ended)
        return;
    log_info("job %lld: %s", (long long)a->id,
             why == FAILURE_CANCELLED ? "being cancelled" : "at its time limit");
    a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_AFTER_STEP);
    a->stop = STOP_ASKED;
    a->stop_why = why;
    a->stop_next_at = clock_monotonic() + m->limits.cancel_grace_seconds;
    if (store_job_get(m->store, a->id, &job, &e))
        return;
    a->stop_next_at = clock_monotonic() + stop_grace(&m->limits, &job);
    say_stopping(m, &job, why);
    store_job_clear(&job);
}

/* The workers are asked so long before the limit as they may need, but not before its half. */
static double ask_at(const struct job_manager *m, const struct active_job *a)
{
    struct store_job job;
    struct error e;
    double lead = m->limits.cancel_grace_seconds;

    if (store_job_get(m->store, a->id, &job, &e) == 0) {
        lead = fmin(stop_grace(&m->limits, &job), job.time_limit_seconds / 2);
        store_job_clear(&job);
    }
    return a->limit_at - lead;
}

static void look_at_limit(struct job_manager *m, struct active_job *a, double now)
{
    char path[PATH_MAX];
    struct error e;

    if (a->stop != STOP_NONE || now < a->stop_next_at)
        return;
    double at = ask_at(m, a);
    a->stop_next_at = fmin(at, now + LOOK_SECONDS); /* its steps may become longer */
    if (now < at)
        return;
    snprintf(path, sizeof path, "%s/" AT_LIMIT, a->attempt_dir);
    if (file_write_atomic(path, "", 0, &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
    stop_begin(m, a, FAILURE_TIME_LIMIT);
}

static bool is_stalled(struct job_manager *m, struct active_job *a, struct stalled *stall)
{
    double now = clock_now();
    struct stall_look look = {.attempt_dir = a->attempt_dir,
                              .stall_seconds = (double)m->limits.stall_seconds,
                              .stopped_since = a->stopped_since};

    if (!a->process.slurm) {
        look.launched_at = now - launch_elapsed_seconds(&a->process);
        look.launcher = a->launcher;
        look.process = &a->process;
    }
    bool found = stalled_look(&look, now, stall);
    a->stopped_since = look.stopped_since;
    return found;
}

/* Ranks that are stopped do not hear that they should end in order. */
static void look_at_stall(struct job_manager *m, struct active_job *a, double now)
{
    struct stalled stall;
    struct error e;

    if (now < a->stall_next_at)
        return;
    a->stall_next_at = now + STALL_LOOK_SECONDS;
    if (!stalled_read(a->attempt_dir, &stall)) {
        if (!is_stalled(m, a, &stall))
            return;
        if (stalled_keep(a->attempt_dir, &stall, &e))
            log_warning("job %lld: %s", (long long)a->id, e.text);
    }
    log_warning("job %lld is ended: %s", (long long)a->id, stall.reason);
    a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_NOW);
    a->stop = STOP_TERMINATED;
    a->stop_why = FAILURE_STALLED;
    a->stop_next_at = now + TERM_SECONDS;
}

void stop_go_on(struct job_manager *m, struct active_job *a, double now)
{
    if (a->stop == STOP_NONE && !a->ended && cancel_is_requested(a->attempt_dir))
        stop_begin(m, a, FAILURE_CANCELLED);
    if (a->stop == STOP_NONE && !a->ended && isfinite(a->limit_at))
        look_at_limit(m, a, now);
    if (a->stop == STOP_NONE && !a->ended)
        look_at_stall(m, a, now);
    if (a->stop == STOP_NONE || a->ended || now < a->stop_next_at)
        return;
    bool terminate = a->stop == STOP_ASKED;
    bool again = a->stop == STOP_KILLED;
    a->stop = terminate ? STOP_TERMINATED : STOP_KILLED;
    a->stop_next_at = now + TERM_SECONDS;
    if (!again)
        log_info("job %lld: %s", (long long)a->id,
                 !terminate ? "its processes are killed"
                 : a->process.slurm
                     ? "the workers did not stop in time, Slurm is told to end them"
                     : "the workers did not stop in time, mpirun is told to end them");
    a->launcher->stop(&a->process, a->attempt_dir, terminate ? LAUNCH_STOP_NOW : LAUNCH_STOP_KILL);
}

double stop_next_at(const struct active_job *a)
{
    return !a->ended && (a->stop != STOP_NONE || isfinite(a->limit_at)) ? a->stop_next_at
                                                                        : INFINITY;
}
