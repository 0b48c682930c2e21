/*
 * Jobs of launcher slurm: what Slurm says becomes the job's state and words, and decides together
 * with the run directory how an attempt ended. A job that waits in Slurm's queue is "queued" and
 * has an attempt; one that Slurm starts is "starting" until its workers say something.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "daemon/job/manager.h"
#include "daemon/launch/slurm_reply.h"

#define EXIT_SECONDS 60.0 /* Slurm knows of its script's end within this, or is told */

/* ---------------------------------------------------------------- what is stored */

char *job_slurm_json(const char *name, const struct slurm_status *status)
{
    json_t *id = status->job_id ? json_integer(status->job_id) : json_null();
    json_t *json = json_pack("{s:o, s:s, s:s*, s:s*, s:s*}", "job_id", id, "name", name, "state",
                             *status->state ? status->state : "SUBMITTING", "reason",
                             *status->reason ? status->reason : "None", "nodes", status->nodes);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

static void store_status(struct job_manager *m, struct active_job *a)
{
    char *text = job_slurm_json(slurm_name(a->process.slurm), &a->slurm);
    struct error e;

    if (!text || (a->slurm_stored && strcmp(text, a->slurm_stored) == 0)) {
        free(text);
        return;
    }
    if (store_job_set_slurm(m->store, a->id, text, &e)) {
        log_warning("job %lld: what Slurm says was not stored: %s", (long long)a->id, e.text);
        free(text);
        return;
    }
    free(a->slurm_stored);
    a->slurm_stored = text;
}

static void set_state(struct job_manager *m, struct active_job *a, enum job_state to,
                      const char *reason)
{
    struct store_state_change change = {to, reason, clock_now(), NULL};
    struct error e;

    if (store_job_set_state(m->store, a->id, &change, &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
}

/* Words of a job that waits change often, and make no events. */
static void say_waiting(struct job_manager *m, const struct active_job *a)
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
        log_warning("job %lld: what it waits for was not stored: %s", (long long)a->id, e.text);
}

/* ---------------------------------------------------------------- an attempt's files */

static bool has_file(const struct active_job *a, const char *name, bool filled)
{
    char path[PATH_MAX];
    struct stat st;

    return (size_t)snprintf(path, sizeof path, "%s/%s", a->attempt_dir, name) < sizeof path &&
           stat(path, &st) == 0 && (!filled || st.st_size > 0);
}

/* What the script left as its last act; -1: nothing. */
static int64_t exit_of_script(const struct active_job *a)
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

/* ---------------------------------------------------------------- put back into Slurm's queue */

static void judge_requeue(const struct active_job *a, struct verdict *v)
{
    struct launch_exit unknown = {-1, -1};

    failure_judge(a->attempt_dir, &unknown, FAILURE_NOT_STOPPED, v);
    if (v->state == JOB_SUCCEEDED)
        return;
    v->state = JOB_FAILED;
    v->outside = true;
    v->own_fault = false;
    /* Nothing had begun: no restart is used up. */
    v->goes_on = !has_file(a, "slurm-job", false);
    snprintf(v->reason, sizeof v->reason,
             "Slurm put its job %lld back into the queue (requeued, preempted, or a node failed)",
             (long long)a->slurm.job_id);
    if (v->step)
        snprintf(v->reason + strlen(v->reason), sizeof v->reason - strlen(v->reason),
                 " after step %lld", (long long)v->step);
}

/* The attempt is over, and the next one is Slurm's next start of the same job. */
static int next_attempt(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct verdict verdict;
    struct store_job job = {0};
    struct store_state_change waits = {JOB_QUEUED, NULL, clock_now(), NULL};
    int64_t attempt;
    int status = ingest_catch_up(a->ingest, e);

    if (status)
        return status;
    judge_requeue(a, &verdict);
    status = job_store_end(m, a, &verdict, true, e);
    if (!status)
        status = store_job_get(m->store, a->id, &job, e);
    if (status)
        return status;
    bool over = job_state_is_final(job.state);
    waits.reason = job.reason;
    if (!over)
        status = store_job_begin_attempt(m->store, a->id, &waits, 0, &attempt, e);
    store_job_clear(&job);
    if (!status && !over)
        status = job_open_attempt(m, a, attempt, e);
    free(a->slurm_stored);
    a->slurm_stored = NULL;
    if (over) {
        slurm_cancel(a->process.slurm); /* restart.max is used up */
        a->over = true;
        return status;
    }
    a->waits = true;
    a->limit_at = INFINITY;
    a->stop = STOP_NONE;
    a->stop_why = FAILURE_NOT_STOPPED;
    return status;
}

static void follow_restarts(struct job_manager *m, struct active_job *a)
{
    int64_t now = slurm_first_attempt(a->process.slurm) + a->slurm.restarts;
    struct error e;

    while (!a->over && a->attempt < now) {
        if (next_attempt(m, a, &e)) {
            log_error("job %lld: its restart by Slurm was not stored: %s", (long long)a->id,
                      e.text);
            return;
        }
    }
}

/* ---------------------------------------------------------------- a look */

static void note_start(struct job_manager *m, struct active_job *a)
{
    char reason[512];

    a->waits = false;
    snprintf(reason, sizeof reason, "Slurm has started its job %lld on %s",
             (long long)a->slurm.job_id, *a->slurm.nodes ? a->slurm.nodes : "its nodes");
    set_state(m, a, JOB_STARTING, reason);
    /* traind's clock, so that a change of the machine's does no harm behind this. */
    double ran = a->slurm.start > 0 ? fmax(0, clock_now() - a->slurm.start) : 0;
    if (!isnan(a->time_limit_seconds))
        a->limit_at = clock_monotonic() + a->time_limit_seconds - ran;
}

static void note_end_in_slurm(struct active_job *a)
{
    int64_t code = exit_of_script(a);

    a->ended = true;
    a->ended_at = clock_monotonic();
    a->exit_code = code >= 0 ? code : a->slurm.exit_code;
    a->exit_signal = code >= 0 ? -1 : a->slurm.exit_signal;
}

/* The script has ended. A controller that was killed may have forgotten that the job ever ran. */
static void look_at_exit(struct active_job *a)
{
    double now = clock_monotonic();

    if (!has_file(a, "exit", true)) {
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

void job_look_at_slurm(struct job_manager *m, struct active_job *a)
{
    struct slurm_status status;

    if (a->ended)
        return;
    slurm_read(a->process.slurm, &status);
    bool news = memcmp(&status, &a->slurm, sizeof status) != 0;
    a->slurm = status;
    if (news)
        follow_restarts(m, a);
    if (news && !a->over)
        store_status(m, a);
    if (a->waits && !a->over &&
        (status.phase == SLURM_RUNNING || has_file(a, "events.jsonl", true)))
        note_start(m, a);
    else if (news && a->waits && status.phase <= SLURM_WAITING && a->stop == STOP_NONE && !a->over)
        say_waiting(m, a);
    look_at_exit(a);
    if (status.phase >= SLURM_ENDED || a->without_slurm)
        note_end_in_slurm(a);
}

/* ---------------------------------------------------------------- the verdict */

static bool is_state(const struct active_job *a, const char *state)
{
    return strcmp(a->slurm.state, state) == 0;
}

/* Its time was over: goes on where there is something to go on from. */
static void judge_time(const struct active_job *a, struct verdict *v)
{
    v->state = JOB_FAILED;
    v->goes_on = v->checkpoint > 0;
    v->own_fault = !v->goes_on;
    if (v->goes_on)
        snprintf(v->reason, sizeof v->reason,
                 "the time of Slurm's job %lld was over after step %lld",
                 (long long)a->slurm.job_id, (long long)v->step);
    else
        snprintf(
            v->reason, sizeof v->reason,
            "the time of Slurm's job %lld was over before it had written a checkpoint: give it "
            "more (cluster.time_limit), or let it write them more often "
            "(checkpoint.every_steps)",
            (long long)a->slurm.job_id);
}

static void judge_state(const struct active_job *a, const char *words, struct verdict *v)
{
    char before[FAILURE_TEXT_BYTES];
    bool blames_rank = v->state == JOB_FAILED && v->who.rank >= 0;

    snprintf(before, sizeof before, "%s", v->reason);
    snprintf(v->reason, sizeof v->reason, "Slurm ended its job %lld on %s: %s [%s]",
             (long long)a->slurm.job_id, *a->slurm.nodes ? a->slurm.nodes : "its nodes", words,
             a->slurm.state);
    if (v->step > 0)
        snprintf(v->reason + strlen(v->reason), sizeof v->reason - strlen(v->reason),
                 "; the last step was %lld", (long long)v->step);
    if (blames_rank)
        snprintf(v->reason + strlen(v->reason), sizeof v->reason - strlen(v->reason), "; %s",
                 before);
    v->outside = is_state(a, "NODE_FAIL") || is_state(a, "BOOT_FAIL") || is_state(a, "PREEMPTED");
    v->state = is_state(a, "CANCELLED") || is_state(a, "REVOKED") ? JOB_CANCELLED : JOB_FAILED;
}

/* The workers said nothing at all. */
static void judge_silence(const struct active_job *a, struct verdict *v)
{
    v->state = JOB_FAILED;
    snprintf(v->reason, sizeof v->reason,
             "Slurm's job %lld ended [%s%s%s] before a worker said anything; see "
             "attempt-%lld/slurm.log",
             (long long)a->slurm.job_id, a->slurm.state,
             strcmp(a->slurm.reason, "None") ? ", " : "",
             strcmp(a->slurm.reason, "None") ? a->slurm.reason : "", (long long)a->attempt);
    v->outside = a->slurm.phase == SLURM_GONE || strcmp(a->slurm.reason, "JobLaunchFailure") == 0;
}

void job_judge_by_slurm(const struct active_job *a, enum failure_stop why, struct verdict *v)
{
    const char *words = slurm_state_words(a->slurm.state);
    bool stopped = v->state == JOB_CANCELLED;

    if (v->state == JOB_SUCCEEDED || (why == FAILURE_CANCELLED && a->slurm.phase != SLURM_REFUSED))
        return;
    if (a->slurm.phase == SLURM_REFUSED) {
        v->state = why == FAILURE_CANCELLED ? JOB_CANCELLED : JOB_FAILED;
        v->own_fault = true;
        snprintf(v->reason, sizeof v->reason, "Slurm did not take the job: %.480s", a->slurm.words);
    } else if (is_state(a, "PREEMPTED") || is_state(a, "NODE_FAIL") ||
               (is_state(a, "CANCELLED") && why == FAILURE_NOT_STOPPED)) {
        judge_state(a, words, v);
    } else if (why == FAILURE_TIME_LIMIT || is_state(a, "TIMEOUT") || is_state(a, "DEADLINE") ||
               (stopped && has_file(a, "slurm-signal", false))) {
        judge_time(a, v);
    } else if (words) {
        judge_state(a, words, v);
    } else if (v->state == JOB_QUEUED) {
        judge_silence(a, v);
    }
}

/* ---------------------------------------------------------------- a former daemon's */

int job_recover_slurm(struct job_manager *m, const struct store_job *job, struct error *e)
{
    struct launch_process process;
    json_t *slurm = json_loads(job->slurm, 0, NULL);
    const char *name = json_string_value(json_object_get(slurm, "name"));
    int64_t id = json_integer_value(json_object_get(slurm, "job_id"));
    int status = name ? slurm_adopt(m->slurm, name, id, job->run_dir, &process, e)
                      : error_set(e, ERR_CORRUPT, "job %lld: its name in Slurm is not stored",
                                  (long long)job->id);

    if (!status) {
        if (job_follow(m, job, job->attempt, &process, e)) {
            slurm_release(process.slurm);
            log_info("job %lld: looked for in Slurm as %s", (long long)job->id, name);
        } else {
            slurm_forget(process.slurm);
            status = -(int)e->code;
        }
    }
    json_decref(slurm);
    return status;
}
