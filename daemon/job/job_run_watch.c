#include "daemon/job/job_run_watch.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "daemon/job/job_grow.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_run.h"
#include "daemon/job/job_run_end.h"
#include "daemon/store/attempt.h"

#define STALL_LOOK_SECONDS 2
#define CLOCK_STEP_SECONDS 5
#define REST_LOOK_SECONDS  0.1  /* for the last processes of a job, which are about to end */
#define EXIT_SECONDS       60.0 /* after its script has ended; then Slurm is told to end the job */

/* May free *a. */
static void watch_observe(struct job_manager *m, struct active_job *a, struct job_observation seen)
{
    struct error ignored; /* the action has logged it */

    seen.now = clock_monotonic();
    job_run_dispatch(m, a, &seen, &ignored);
}

void job_run_launcher_ended(struct job_manager *m, struct active_job *a)
{
    launch_reap(&a->process, &a->exit_code, &a->exit_signal);
    watch_observe(
        m, a, (struct job_observation){.event = ON_LAUNCHER_ENDED, .killed = a->exit_signal > 0});

    assert_object(a, ACTIVE_JOB_MAGIC);
}

static double watch_grace(struct job_manager *m, const struct active_job *a)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, a->id, &job, &e))
        return m->limits.cancel_grace_seconds;
    double grace = job_run_grace_seconds(&m->limits, &job);
    store_job_clear(&job);
    return grace;
}

void job_run_cancel(struct job_manager *m, struct active_job *a)
{
    assert_object(a, ACTIVE_JOB_MAGIC);
    if (job_run_is_under_way(a) && a->machine.stop == STOP_NONE)
        watch_observe(
            m, a,
            (struct job_observation){.event = ON_CANCEL_SEEN, .grace_seconds = watch_grace(m, a)});
}

/* ---------------------------------------------------------------- stalls */

/* After a step of the clock (such as a suspended machine) everything written before it looks old.
 * Silence is not taken for a stall until every rank has had time to report again. */
static bool watch_clock_is_steady(struct job_manager *m, double now)
{
    double monotonic = clock_monotonic(), offset = now - monotonic;

    if (m->clock_offset > 0 && fabs(offset - m->clock_offset) > CLOCK_STEP_SECONDS) {
        log_warning("the clock has stepped by %.0f s: stalled jobs will be detected later",
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

    if (stalled_read(a->attempt_dir, &a->stall)) /* detected by an earlier daemon */
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

/* ---------------------------------------------------------------- Slurm */

/* Stores the reason without an event, because a waiting job's reason changes often. */
static void watch_slurm_reason(struct job_manager *m, const struct active_job *a)
{
    char reason[sizeof a->slurm.words + 64];
    double start = a->slurm.phase == SLURM_WAITING ? a->slurm.start : 0;
    struct store_waiting waiting = {a->id, reason, start > clock_now() ? start : 0};
    struct error e;

    if (a->slurm.job_id)
        snprintf(reason, sizeof reason, "in Slurm's queue as job %lld: %s",
                 (long long)a->slurm.job_id, a->slurm.words);
    else
        snprintf(reason, sizeof reason, "%s", a->slurm.words);
    if (store_jobs_wait(m->store, &waiting, 1, &e))
        log_warning("job %lld: cannot store why it waits: %s", (long long)a->id, e.text);
}

static void watch_slurm_restarts(struct job_manager *m, struct active_job *a)
{
    int64_t newest = slurm_first_attempt(a->process.slurm) + a->slurm.restarts;

    while (job_run_is_under_way(a) && a->attempt < newest) {
        struct job_observation seen = {.event = ON_SLURM_PUT_BACK, .now = clock_monotonic()};
        struct error e;
        if (job_run_judge_put_back(m, a, &seen.last, &e)) {
            job_run_complain(a, "cannot store its restart by Slurm", &e);
            return;
        }
        if (job_run_dispatch(m, a, &seen, &e) != MACHINE_DONE) {
            a->judged = false;
            return;
        }
    }
}

/* Checks whether the script has ended. A killed controller may have lost its job. */
static void watch_slurm_exit(struct active_job *a)
{
    double now = clock_monotonic();

    if (!attempt_file_is_filled(a->attempt_dir, "exit")) {
        a->exit_seen_at = 0;
    } else if (a->exit_seen_at == 0) {
        a->exit_seen_at = now;
        slurm_look_soon(a->process.slurm);
    } else if (a->slurm.phase < SLURM_ENDED && now - a->exit_seen_at > EXIT_SECONDS) {
        log_warning("job %lld: its script ended, but Slurm's job %lld did not: cancelling it",
                    (long long)a->id, (long long)a->slurm.job_id);
        slurm_cancel(a->process.slurm);
        a->without_slurm = true;
    }
}

static void watch_slurm_end(struct job_manager *m, struct active_job *a)
{
    char path[PATH_MAX], *text;
    size_t bytes;
    int64_t code = -1; /* written by the script as its last action */

    file_path(path, NULL, "%s/exit", a->attempt_dir);
    if (file_read(path, 64, &text, &bytes, NULL) == 0) {
        code = strtoll(text, NULL, 10);
        free(text);
    }
    a->exit_code = code >= 0 ? code : a->slurm.exit_code;
    a->exit_signal = code >= 0 ? -1 : a->slurm.exit_signal;
    watch_observe(m, a, (struct job_observation){.event = ON_LAUNCHER_ENDED});
}

static void watch_slurm(struct job_manager *m, struct active_job *a)
{
    struct slurm_status status;

    slurm_read(a->process.slurm, &status);
    bool news = memcmp(&status, &a->slurm, sizeof status) != 0;
    a->slurm = status;
    watch_slurm_restarts(m, a);
    if (!job_run_is_under_way(a))
        return;
    if (news)
        job_run_store_slurm(m, a);
    if (a->machine.phase == PHASE_IN_SLURM) {
        /* From here on, traind's own clock counts, so a change of that machine's clock does no
         * harm. */
        double ran = status.start > 0 ? fmax(0, clock_now() - status.start) : 0;
        if (status.phase == SLURM_RUNNING || attempt_file_is_filled(a->attempt_dir, "events.jsonl"))
            watch_observe(m, a,
                          (struct job_observation){.event = ON_SLURM_STARTED, .ran_seconds = ran});
        else if (news && status.phase <= SLURM_WAITING && a->machine.stop == STOP_NONE)
            watch_slurm_reason(m, a);
    }
    watch_slurm_exit(a);
    if (status.phase >= SLURM_ENDED || a->without_slurm) {
        watch_slurm_end(m, a);
    } else if (status.silent && a->machine.stop != STOP_NONE) {
        a->machine.may_have_run = attempt_file_is_filled(a->attempt_dir, "slurm-job");
        watch_observe(m, a, (struct job_observation){.event = ON_SLURM_SILENT});
    }
}

/* ---------------------------------------------------------------- checking a job */

void job_run_read_events(struct active_job *a)
{
    struct error e;

    assert_object(a, ACTIVE_JOB_MAGIC);
    if (a->ingest && ingest_catch_up(a->ingest, &e))
        job_run_complain(a, "cannot store its events yet", &e);
}

static void watch_under_way(struct job_manager *m, struct active_job *a)
{
    double now = clock_monotonic();

    if (a->process.slurm)
        watch_slurm(m, a);
    if (a->machine.cancel_asked || attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_CANCEL))
        job_run_cancel(m, a);
    if (now >= a->machine.due)
        watch_observe(m, a,
                      (struct job_observation){
                          .event = ON_TIME_PASSED,
                          .grace_seconds = a->machine.stop == STOP_NONE ? watch_grace(m, a) : 0});
    if (job_grow_is_due(m, a))
        watch_observe(
            m, a,
            (struct job_observation){.event = ON_MAY_GROW, .grace_seconds = watch_grace(m, a)});
    /* Stopped ranks (SIGSTOP) cannot be asked to end. */
    if (job_run_is_under_way(a) && a->machine.stop == STOP_NONE && now >= a->stall_next_at) {
        a->stall_next_at = now + STALL_LOOK_SECONDS;
        if (watch_finds_stall(m, a))
            watch_observe(m, a, (struct job_observation){.event = ON_STALLED});
    }
}

void job_run_watch(struct job_manager *m, struct active_job *a, bool due)
{
    assert_object(a, ACTIVE_JOB_MAGIC);
    if (job_run_is_under_way(a))
        watch_under_way(m, a);
    if (job_run_is_under_way(a)) {
        if (due)
            job_run_read_events(a);
        return;
    }
    bool left = !a->machine.never_started && !a->without_slurm &&
                a->launcher->survivors(&a->process, a->attempt_dir) > 0;
    watch_observe(m, a,
                  (struct job_observation){.event = left ? ON_PROCESSES_LEFT : ON_NOTHING_LEFT});
}

double job_run_next_at(const struct active_job *a, double now)
{
    assert_object(a, ACTIVE_JOB_MAGIC);
    return job_run_is_under_way(a) ? a->machine.due : now + REST_LOOK_SECONDS;
}
