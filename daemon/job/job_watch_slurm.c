/*
 * Jobs of launcher slurm: what Slurm says becomes the job's state and words. A job that waits in
 * Slurm's queue is "queued" and has an attempt; one that Slurm starts is "starting" until its
 * workers say something.
 */
#include "daemon/job/job_watch_slurm.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "daemon/job/job_active.h"
#include "daemon/job/job_act.h"
#include "daemon/job/job_end.h"
#include "daemon/job/job_start.h"
#include "daemon/store/attempt.h"

#define EXIT_SECONDS 60.0 /* Slurm knows of its script's end within this, or is told */

static void slurm_store_status(struct job_manager *m, struct active_job *a)
{
    char *text = start_slurm_json(slurm_name(a->process.slurm), &a->slurm);
    struct error e;

    if (!text || (a->slurm_stored && strcmp(text, a->slurm_stored) == 0)) {
        free(text);
        return;
    }
    if (store_job_set_slurm(m->store, a->id, text, &e)) {
        log_warning("job %lld: cannot store its state in Slurm: %s", (long long)a->id, e.text);
        free(text);
        return;
    }
    free(a->slurm_stored);
    a->slurm_stored = text;
}

/* Words of a job that waits change often, and make no events. */
static void slurm_say_waiting(struct job_manager *m, const struct active_job *a)
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
        log_warning("job %lld: cannot store the reason why it waits: %s", (long long)a->id, e.text);
}

/* ---------------------------------------------------------------- put back into Slurm's queue */

static void slurm_follow_restarts(struct job_manager *m, struct active_job *a)
{
    int64_t newest = slurm_first_attempt(a->process.slurm) + a->slurm.restarts;

    while (active_is_under_way(a) && a->attempt < newest) {
        struct job_observation seen = {.event = ON_SLURM_PUT_BACK, .now = clock_monotonic()};
        struct error e;
        if (end_judge_put_back(m, a, &seen.last, &e)) {
            manager_complain(a, "its restart by Slurm was not stored", &e);
            return;
        }
        if (job_handle(m, a, &seen, &e) != MACHINE_DONE) {
            a->judged = false;
            return;
        }
    }
}

/* ---------------------------------------------------------------- its end */

/* What the script left as its last act; -1: nothing. */
static int64_t slurm_exit_of_script(const struct active_job *a)
{
    char path[PATH_MAX], *text;
    size_t bytes;
    int64_t code = -1;

    snprintf(path, sizeof path, "%s/exit", a->attempt_dir);
    if (file_read(path, 64, &text, &bytes, NULL) == 0) {
        code = strtoll(text, NULL, 10);
        free(text);
    }
    return code;
}

/* The script has ended. A controller that was killed may have forgotten that the job ever ran. */
static void slurm_look_at_exit(struct active_job *a)
{
    double now = clock_monotonic();

    if (!attempt_file_is_filled(a->attempt_dir, "exit")) {
        a->exit_seen_at = 0;
    } else if (a->exit_seen_at == 0) {
        a->exit_seen_at = now;
        slurm_look_soon(a->process.slurm);
    } else if (a->slurm.phase < SLURM_ENDED && now - a->exit_seen_at > EXIT_SECONDS) {
        log_warning("job %lld: its script ended, but Slurm's job %lld did not: it is cancelled",
                    (long long)a->id, (long long)a->slurm.job_id);
        slurm_cancel(a->process.slurm);
        a->without_slurm = true;
    }
}

static void slurm_note_end(struct job_manager *m, struct active_job *a)
{
    struct job_observation seen = {.event = ON_LAUNCHER_ENDED, .now = clock_monotonic()};
    int64_t code = slurm_exit_of_script(a);

    a->exit_code = code >= 0 ? code : a->slurm.exit_code;
    a->exit_signal = code >= 0 ? -1 : a->slurm.exit_signal;
    job_tell(m, a, &seen);
}

/* ---------------------------------------------------------------- a look */

static void slurm_note_start(struct job_manager *m, struct active_job *a)
{
    /* From here on by traind's clock, so that a change of the machine's does no harm. */
    struct job_observation seen = {
        .event = ON_SLURM_STARTED,
        .now = clock_monotonic(),
        .ran_seconds = a->slurm.start > 0 ? fmax(0, clock_now() - a->slurm.start) : 0};

    job_tell(m, a, &seen);
}

/* It is to end, and Slurm has not said anything of it, or does not any more. */
static void slurm_note_silence(struct job_manager *m, struct active_job *a)
{
    struct job_observation seen = {.event = ON_SLURM_SILENT, .now = clock_monotonic()};

    a->machine.may_have_run = attempt_file_is_filled(a->attempt_dir, "slurm-job");
    job_tell(m, a, &seen);
}

void watch_slurm(struct job_manager *m, struct active_job *a)
{
    struct slurm_status status;

    slurm_read(a->process.slurm, &status);
    bool news = memcmp(&status, &a->slurm, sizeof status) != 0;
    a->slurm = status;
    slurm_follow_restarts(m, a);
    if (!active_is_under_way(a))
        return;
    if (news)
        slurm_store_status(m, a);
    if (a->machine.phase == PHASE_IN_SLURM) {
        if (status.phase == SLURM_RUNNING || attempt_file_is_filled(a->attempt_dir, "events.jsonl"))
            slurm_note_start(m, a);
        else if (news && status.phase <= SLURM_WAITING && a->machine.stop == STOP_NONE)
            slurm_say_waiting(m, a);
    }
    slurm_look_at_exit(a);
    if (status.phase >= SLURM_ENDED || a->without_slurm)
        slurm_note_end(m, a);
    else if (status.silent && a->machine.stop != STOP_NONE)
        slurm_note_silence(m, a);
}
