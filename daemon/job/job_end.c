#include "daemon/job/job_end.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/notify/rule.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "daemon/export/export.h"
#include "daemon/job/job_active.h"
#include "daemon/job/job_replan.h"
#include "daemon/job/job_drain.h"
#include "daemon/job/job_state_machine.h"
#include "daemon/job/job_slurm_verdict.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/run_dir_trim.h"
#include "daemon/job/resume_point.h"
#include "daemon/launch/attempt_tail.h"
#include "daemon/launch/failure_rules.h"
#include "daemon/launch/slurm_energy.h"
#include "daemon/launch/stalled.h"
#include "daemon/store/attempt.h"
#include "daemon/store/metric.h"
#include "daemon/store/node.h"

/* ---------------------------------------------------------------- the verdict */

/* Why this attempt was asked to stop, also by a daemon before this one. */
static enum failure_stop end_why(const struct active_job *a)
{
    struct stalled stall;

    if (a->machine.cancel_asked || a->machine.stop_why == FAILURE_CANCELLED ||
        attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_CANCEL))
        return FAILURE_CANCELLED;
    if (a->machine.stop_why == FAILURE_STALLED || stalled_read(a->attempt_dir, &stall))
        return FAILURE_STALLED;
    return a->machine.stop_why == FAILURE_TIME_LIMIT ||
                   attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_LIMIT)
               ? FAILURE_TIME_LIMIT
               : FAILURE_NOT_STOPPED;
}

static struct slurm_end end_in_slurm(const struct active_job *a, enum failure_stop why)
{
    return (struct slurm_end){.slurm = &a->slurm,
                              .attempt = a->attempt,
                              .why = why,
                              .signalled = attempt_flag_is_set(a->attempt_dir, "slurm-signal"),
                              .begun = attempt_flag_is_set(a->attempt_dir, "slurm-job")};
}

/* Its events are stored to the last one, then the run directory is asked, then Slurm. */
static int end_judge(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct launch_exit how = {a->exit_code, a->exit_signal};
    enum failure_stop why = end_why(a);
    int status = ingest_catch_up(a->ingest, e);

    if (status)
        return status;
    failure_judge(a->attempt_dir, &how, why, &a->verdict);
    if (a->machine.slurm) {
        struct slurm_end end = end_in_slurm(a, why);
        slurm_verdict(&end, &a->verdict);
    }
    failure_rules_apply(m->rules, a->attempt_dir, &a->verdict);
    return 0;
}

/* A full or read-only disk, a locked database, no memory, no descriptors or processes left: it may
 * be better later. */
static bool end_is_passing(const struct error *e)
{
    return e->code == ERR_NO_SPACE || e->code == ERR_IO || e->code == ERR_NO_MEMORY ||
           e->code == ERR_BUSY;
}

/* As the end of an attempt: what may pass counts as a restart, whatever a rule says. */
static void end_judge_no_start(const struct job_manager *m, struct active_job *a)
{
    a->verdict = (struct verdict){
        .state = JOB_FAILED,
        .phase = "start",
        .outside = end_is_passing(&a->no_start),
        .own_fault = !end_is_passing(&a->no_start),
        .who = {.rank = -1, .signal = -1, .exit_code = -1}
    };
    snprintf(a->verdict.reason, sizeof a->verdict.reason, "%.*s", FAILURE_TEXT_BYTES - 1,
             a->no_start.text);
    failure_rules_apply(m->rules, NULL, &a->verdict);
    a->verdict.again = FAILURE_AGAIN_USUAL;
}

/* ---------------------------------------------------------------- what it means */

char *end_first_failure(const struct store_job *job)
{
    json_t *failure = job->failure ? json_loads(job->failure, 0, NULL) : NULL;
    const char *reason = json_string_value(json_object_get(failure, "reason"));
    char *copy = reason ? strdup(reason) : NULL;

    json_decref(failure);
    return copy;
}

static void end_decide(const struct job_manager *m, const struct active_job *a,
                       const struct store_job *job, bool keeps_slurm, struct attempt_outcome *end)
{
    char *first = end_first_failure(job);
    struct attempt_history history = {
        .restarts = job->restarts,
        .restarts_max = a->spec ? a->spec->restart.max : 0,
        .restart_delay_seconds = m->limits.restart_delay_seconds,
        .checkpoint = resume_point_usable_step(job->run_dir),
        .trains = !a->spec || a->spec->mode == JOB_MODE_TRAIN,
        .ran = a->ingest != NULL,
        .resumes = job->resumes,
        .keeps_slurm = keeps_slurm,
        .first_failure = first,
    };

    job_state_after_attempt(&a->verdict, &history, end);
    free(first);
}

/* ---------------------------------------------------------------- the store */

/* NAN: Slurm measures none, or the script did not come to its end. */
static double end_joules(const struct active_job *a)
{
    char *text = a->machine.slurm ? attempt_read_tail(a->attempt_dir, SLURM_ENERGY) : NULL;
    double joules = text ? slurm_energy_read(text) : NAN;

    free(text);
    return joules;
}

static int end_write(struct job_manager *m, struct active_job *a, const struct store_job *job,
                     int64_t *next, struct error *e)
{
    struct attempt_outcome end;
    char *by = NULL;

    end_decide(m, a, job, next != NULL, &end);
    double now = clock_now();
    json_t *failure = end.failed ? failure_to_json(&a->verdict, a->attempt) : NULL;
    struct notice_rule tell = {a->verdict.notify, NOTICE_BIT(NOTICE_ATTEMPT_FAILED),
                               a->verdict.notify_format};
    struct store_attempt_end row = {
        .attempt = a->attempt,
        .change = {end.to, *end.reason ? end.reason : NULL, now, NULL},
        .exit_code = a->exit_code,
        .exit_signal = a->exit_signal,
        .failure = failure,
        .tell = end.failed && *tell.to ? &tell : NULL,
        .restarts = end.restarts,
        .goes_on = end.goes_on,
        .resumes = end.resumes,
        .joules = end_joules(a),
        .not_before = end.pause_seconds > 0 ? now + end.pause_seconds : 0,
        .next = end.to == JOB_QUEUED ? next : NULL,
    };
    int status = store_steps_speed(m->store, a->id, a->attempt, &row.images_per_sec, e);
    if (!status && end.to == JOB_CANCELLED)
        status = store_job_asked_by(m->store, a->id, a->attempt, &by, e);
    row.change.by = by;
    if (!status)
        status = store_attempt_end(m->store, a->id, &row, e);
    if (!status)
        log_info("job %lld: %s%s%s", (long long)a->id, job_state_name(end.to),
                 *end.reason ? ": " : "", end.reason);
    if (!status && end.failed) {
        manager_count_failure(m, a->verdict.label);
        drain_bad_node(m, a);
    }
    if (!status && end.restarts && a->verdict.hosts_missing)
        job_leave_hosts(m, a->id, a->attempt_dir);
    free(by);
    json_decref(failure);
    return status;
}

static int end_store_verdict(struct job_manager *m, struct active_job *a, int64_t *next,
                             struct error *e)
{
    struct store_job job;
    int status = store_job_get(m->store, a->id, &job, e);

    if (status)
        return status;
    status = end_write(m, a, &job, next, e);
    store_job_clear(&job);
    if (!status) {
        a->judged = false;
        m->look_at_queue = true;
    }
    return status;
}

int end_store(struct job_manager *m, struct active_job *a, struct error *e)
{
    int status = a->judged ? 0 : end_judge(m, a, e);

    if (!status)
        status = end_store_verdict(m, a, NULL, e);
    if (status)
        manager_complain(a, "its end cannot be stored yet", e);
    return status;
}

int end_store_no_start(struct job_manager *m, struct active_job *a, struct error *e)
{
    end_judge_no_start(m, a);
    int status = end_store_verdict(m, a, NULL, e);
    if (status && e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND)
        manager_complain(a, "its end cannot be stored yet", e);
    return status;
}

/* ---------------------------------------------------------------- put back by Slurm */

int end_judge_put_back(struct job_manager *m, struct active_job *a, bool *last, struct error *e)
{
    struct launch_exit unknown = {-1, -1};
    enum failure_stop why = end_why(a) == FAILURE_STALLED ? FAILURE_STALLED : FAILURE_NOT_STOPPED;
    struct slurm_end in_slurm = end_in_slurm(a, why);
    struct store_job job = {0};
    struct attempt_outcome end;
    char *refused = NULL;
    int status = ingest_catch_up(a->ingest, e);

    if (!status)
        status = store_job_get(m->store, a->id, &job, e);
    if (!status)
        status = store_node_refusal(m->store, a->id, job.attempt_started_at, &refused, e);
    if (status) {
        store_job_clear(&job);
        return status;
    }
    in_slurm.refused = refused;
    failure_judge(a->attempt_dir, &unknown, why, &a->verdict);
    slurm_verdict_put_back(&in_slurm, &a->verdict);
    free(refused);
    failure_rules_apply(m->rules, a->attempt_dir, &a->verdict);
    a->judged = true;
    end_decide(m, a, &job, true, &end);
    *last = end.to != JOB_QUEUED;
    store_job_clear(&job);
    return 0;
}

int end_store_put_back(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct active_attempt opened = {0};
    int64_t next = a->attempt + 1;
    int status = active_open(m, a, next, &opened, e);

    if (!status)
        status = end_store_verdict(m, a, &next, e);
    a->judged = false;
    if (status) {
        manager_complain(a, "its restart by Slurm was not stored", e);
        active_close(&opened);
        return status;
    }
    active_switch(m, a, &opened);
    free(a->slurm_stored);
    a->slurm_stored = NULL;
    return 0;
}

/* ---------------------------------------------------------------- behind the end */

void end_finish(struct job_manager *m, struct active_job *a)
{
    struct error e;

    if (a->verdict.state == JOB_SUCCEEDED)
        job_estimate_finished(m->store, a->id, m->slots, clock_now());
    /* For those who look into the run directory; the routes make them anew. */
    if (export_write(m->store, a->id, &e))
        log_warning("job %lld: its logs for others are not written: %s", (long long)a->id, e.text);
    job_trim_run(m, a);
}
