#include "daemon/job/job_watch.h"

#include <math.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "daemon/job/job_active.h"
#include "daemon/job/job_act.h"
#include "daemon/job/job_grace.h"
#include "daemon/job/job_watch_slurm.h"

#define STALL_LOOK_SECONDS 2
#define CLOCK_STEP_SECONDS 5
#define REST_LOOK_SECONDS  0.1 /* the last processes of a job are about to go */

void watch_launcher_ended(struct job_manager *m, struct active_job *a)
{
    struct job_observation seen = {.event = ON_LAUNCHER_ENDED, .now = clock_monotonic()};

    launch_reap(&a->process, &a->exit_code, &a->exit_signal);
    seen.killed = a->exit_signal > 0;
    job_tell(m, a, &seen);
}

/* ---------------------------------------------------------------- asked to end */

static double watch_grace(struct job_manager *m, const struct active_job *a)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, a->id, &job, &e))
        return m->limits.cancel_grace_seconds;
    double grace = grace_of(&m->limits, &job);
    store_job_clear(&job);
    return grace;
}

void watch_cancel(struct job_manager *m, struct active_job *a)
{
    struct job_observation seen = {.event = ON_CANCEL_SEEN, .now = clock_monotonic()};

    if (!active_is_under_way(a) || a->machine.stop != STOP_NONE)
        return;
    seen.grace_seconds = watch_grace(m, a);
    job_tell(m, a, &seen);
}

static void watch_time(struct job_manager *m, struct active_job *a)
{
    struct job_observation seen = {.event = ON_TIME_PASSED, .now = clock_monotonic()};

    if (seen.now < a->machine.due)
        return;
    if (a->machine.stop == STOP_NONE)
        seen.grace_seconds = watch_grace(m, a);
    job_tell(m, a, &seen);
}

/* ---------------------------------------------------------------- stalls */

/* A clock that steps forward, as of a machine that slept, makes old what was written before: until
 * everyone has had the time to speak again, silence means nothing. */
static bool watch_clock_is_steady(struct job_manager *m, double now)
{
    double monotonic = clock_monotonic(), offset = now - monotonic;

    if (m->clock_offset > 0 && fabs(offset - m->clock_offset) > CLOCK_STEP_SECONDS) {
        log_warning("the clock has stepped by %.0f s: jobs that stall are found later",
                    offset - m->clock_offset);
        m->clock_steady_at = monotonic + stalled_longest_silence((double)m->limits.stall_seconds);
    }
    m->clock_offset = offset;
    return monotonic >= m->clock_steady_at;
}

static bool watch_finds_stall(struct job_manager *m, struct active_job *a)
{
    double now = clock_now();
    struct stall_look look = {.attempt_dir = a->attempt_dir,
                              .stall_seconds = (double)m->limits.stall_seconds,
                              .stopped_since = a->stopped_since};

    if (stalled_read(a->attempt_dir, &a->stall)) /* by another daemon */
        return true;
    if (!watch_clock_is_steady(m, now))
        return false;
    if (!a->process.slurm) {
        look.launched_at = now - launch_elapsed_seconds(&a->process);
        look.launcher = a->launcher;
        look.process = &a->process;
    }
    bool found = stalled_look(&look, now, &a->stall);
    a->stopped_since = look.stopped_since;
    return found;
}

/* Ranks that are stopped do not hear that they should end in order. */
static void watch_stall(struct job_manager *m, struct active_job *a)
{
    struct job_observation seen = {.event = ON_STALLED, .now = clock_monotonic()};

    if (a->machine.stop != STOP_NONE || seen.now < a->stall_next_at)
        return;
    a->stall_next_at = seen.now + STALL_LOOK_SECONDS;
    if (watch_finds_stall(m, a))
        job_tell(m, a, &seen);
}

/* ---------------------------------------------------------------- a look */

void watch_events(struct active_job *a)
{
    struct error e;

    if (a->ingest && ingest_catch_up(a->ingest, &e))
        manager_complain(a, "its events cannot be stored yet", &e);
}

/* Of a job whose launcher has ended. */
static void watch_rest(struct job_manager *m, struct active_job *a)
{
    bool left = !a->machine.never_started && !a->without_slurm &&
                a->launcher->survivors(&a->process, a->attempt_dir) > 0;
    struct job_observation seen = {.event = left ? ON_PROCESSES_LEFT : ON_NOTHING_LEFT,
                                   .now = clock_monotonic()};

    job_tell(m, a, &seen);
}

void watch_job(struct job_manager *m, struct active_job *a, bool due)
{
    if (active_is_under_way(a)) {
        if (a->process.slurm)
            watch_slurm(m, a);
        if (a->machine.cancel_asked || attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_CANCEL))
            watch_cancel(m, a);
        watch_time(m, a);
        if (active_is_under_way(a))
            watch_stall(m, a);
    }
    if (!active_is_under_way(a))
        watch_rest(m, a);
    else if (due)
        watch_events(a);
}

double watch_next_at(const struct active_job *a, double now)
{
    return active_is_under_way(a) ? a->machine.due : now + REST_LOOK_SECONDS;
}
