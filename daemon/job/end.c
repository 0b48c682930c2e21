#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/export/export.h"
#include "daemon/job/manager.h"
#include "daemon/job/measure.h"

#define RANKS_SECONDS 2 /* ranks that outlive mpirun end within this, or are killed */
#define REASON_BYTES  (2 * FAILURE_TEXT_BYTES + 256)

static void complain(struct active_job *a, double now, const struct error *e)
{
    if (a->complained_at && now - a->complained_at < 10)
        return;
    a->complained_at = now;
    log_error("job %lld: its end cannot be stored yet: %s", (long long)a->id, e->text);
}

/* ---------------------------------------------------------------- restarts */

/* restart.max of the document, which has every default written out. */
static int64_t restarts_allowed(const struct store_job *job, bool *trains)
{
    json_t *spec = job->spec ? json_loads(job->spec, 0, NULL) : NULL;
    const json_t *most = json_object_get(json_object_get(spec, "restart"), "max");
    const char *mode = json_string_value(json_object_get(spec, "mode"));
    int64_t allowed = json_integer_value(most);

    *trains = !mode || strcmp(mode, "train") == 0;
    json_decref(spec);
    return allowed;
}

/* A job that failed before its first step would do so again, and so would one whose document is
 * wrong or that diverged. */
static bool is_worth_a_restart(const struct store_job *job, const struct verdict *v,
                               int64_t allowed)
{
    bool has_begun = v->step > 0 || v->outside || (v->hosts_missing && job->resumes);

    return v->state == JOB_FAILED && has_begun && !v->own_fault && job->restarts < allowed;
}

double job_restart_delay(const struct job_manager *m, int64_t restarts)
{
    return fmin(RESTART_DELAY_MAX_SECONDS,
                m->limits.restart_delay_seconds * pow(2, (double)restarts));
}

static void failure_reason(const struct store_job *job, char *text, size_t bytes)
{
    json_t *failure = job->failure ? json_loads(job->failure, 0, NULL) : NULL;
    const char *reason = json_string_value(json_object_get(failure, "reason"));

    snprintf(text, bytes, "%s", reason ? reason : "");
    json_decref(failure);
}

static void say_restart(const struct job_manager *m, const struct store_job *job,
                        const struct verdict *v, int64_t allowed, char *reason)
{
    int64_t step = job_usable_checkpoint(job->run_dir);
    char from[64] = "the beginning, as it has no checkpoint";

    if (step > 0)
        snprintf(from, sizeof from, "its checkpoint of step %lld", (long long)step);
    snprintf(reason, REASON_BYTES, "%s; restart %lld of %lld follows in %.0f s, from %s", v->reason,
             (long long)job->restarts + 1, (long long)allowed, job_restart_delay(m, job->restarts),
             from);
}

/* The first cause comes first. */
static void say_end(const struct store_job *job, const struct verdict *v, char *reason)
{
    char first[FAILURE_TEXT_BYTES];
    const char *times = job->restarts == 1 ? "restart" : "restarts";

    snprintf(reason, REASON_BYTES, "%s", v->reason);
    if (job->restarts == 0)
        return;
    failure_reason(job, first, sizeof first);
    if (v->state == JOB_SUCCEEDED)
        snprintf(reason, REASON_BYTES, "complete after %lld %s; the first failure: %s",
                 (long long)job->restarts, times, first);
    else if (v->state == JOB_FAILED)
        snprintf(reason, REASON_BYTES, "%s; failed again after %lld %s, the last time: %s", first,
                 (long long)job->restarts, times, v->reason);
}

/* ---------------------------------------------------------------- the end */

/* Nothing went wrong: the allocation was over, and the next one follows at once. */
static void say_next_link(const struct store_job *job, const struct verdict *v, char *reason)
{
    snprintf(reason, REASON_BYTES,
             "%s; goes on in another allocation, from its checkpoint of step %lld", v->reason,
             (long long)job_usable_checkpoint(job->run_dir));
}

int job_store_end(struct job_manager *m, struct active_job *a, const struct verdict *v,
                  bool keeps_slurm, struct error *e)
{
    struct store_job job;
    char reason[REASON_BYTES];
    bool trains;
    int status = store_job_get(m->store, a->id, &job, e);

    if (status)
        return status;
    int64_t allowed = restarts_allowed(&job, &trains);
    bool restarts = !v->goes_on && is_worth_a_restart(&job, v, allowed);
    if (v->goes_on)
        say_next_link(&job, v, reason);
    else if (restarts && keeps_slurm)
        snprintf(reason, sizeof reason, "%s; restart %lld of %lld", v->reason,
                 (long long)job.restarts + 1, (long long)allowed);
    else if (restarts)
        say_restart(m, &job, v, allowed, reason);
    else
        say_end(&job, v, reason);
    json_t *failure = v->state == JOB_FAILED && !v->goes_on ? failure_to_json(v, a->attempt) : NULL;
    double now = clock_now();
    struct store_attempt_end end = {
        .attempt = a->attempt,
        .change = {restarts || v->goes_on ? JOB_QUEUED : v->state, *reason ? reason : NULL, now,
                   NULL},
        .exit_code = a->exit_code,
        .exit_signal = a->exit_signal,
        .failure = failure,
        .restarts = restarts,
        .goes_on = v->goes_on,
        .resumes = trains && (a->attempt_dir || job.resumes), /* else nothing of it has run */
        .not_before = restarts && !keeps_slurm ? now + job_restart_delay(m, job.restarts) : 0,
    };
    char *by = NULL;
    if (end.change.to == JOB_CANCELLED)
        status = store_job_asked_by(m->store, a->id, a->attempt, &by, e);
    end.change.by = by;
    if (!status)
        status = store_attempt_end(m->store, a->id, &end, e);
    if (!status)
        log_info("job %lld: %s%s%s", (long long)a->id, job_state_name(end.change.to),
                 *reason ? ": " : "", reason);
    free(by);
    json_decref(failure);
    if (!status && restarts && v->hosts_missing)
        job_leave_hosts(m, a->id, a->attempt_dir);
    store_job_clear(&job);
    return status;
}

/* True when no process of the attempt is left. */
static bool clear_up(struct active_job *a, double now)
{
    if (a->without_slurm || a->launcher->survivors(&a->process, a->attempt_dir) == 0)
        return true;
    if (now - a->ended_at >= RANKS_SECONDS || a->exit_signal > 0)
        a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_KILL);
    return false;
}

/* Others' formats, for those who look into the run directory; the routes make them anew. */
static void write_exports(struct job_manager *m, const struct active_job *a)
{
    struct error e;

    if (export_write(m->store, a->id, &e))
        log_warning("job %lld: its logs for others are not written: %s", (long long)a->id, e.text);
}

bool job_try_to_end(struct job_manager *m, struct active_job *a, double now)
{
    struct launch_exit how = {a->exit_code, a->exit_signal};
    struct verdict verdict;
    struct error e;

    if (!clear_up(a, now))
        return false;
    if (a->over) {
        job_forget(m, a);
        return true;
    }
    int status = ingest_catch_up(a->ingest, &e);
    if (!status) {
        failure_judge(a->attempt_dir, &how, stop_why(a), &verdict);
        if (a->process.slurm)
            job_judge_by_slurm(a, stop_why(a), &verdict);
        status = job_store_end(m, a, &verdict, false, &e);
    }
    if (status) {
        complain(a, now, &e);
        return false;
    }
    if (verdict.state == JOB_SUCCEEDED)
        measure_finished(m->store, a->id, m->slots, clock_now());
    write_exports(m, a);
    job_trim_run(m, a);
    m->look_at_queue = true;
    job_forget(m, a);
    job_keep_limits(m);
    return true;
}
