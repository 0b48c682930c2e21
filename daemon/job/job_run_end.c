#include "daemon/job/job_run_end.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/notify/rule.h"
#include "common/run/attempt.h"
#include "common/system/host.h"
#include "common/xalloc.h"
#include "daemon/export/export.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_replan.h"
#include "daemon/job/resume_point.h"
#include "daemon/job/run_dir_cleanup.h"
#include "daemon/launch/failure_rules.h"
#include "daemon/launch/slurm_reply.h"
#include "daemon/node/node.h"
#include "daemon/store/attempt.h"
#include "daemon/store/event.h"
#include "daemon/store/metric.h"
#include "daemon/store/node.h"

/* ---------------------------------------------------------------- Slurm's information */

static bool end_slurm_is(const struct slurm_end *end, const char *state)
{
    return strcmp(end->slurm->state, state) == 0;
}

static const char *end_slurm_nodes(const struct slurm_end *end)
{
    return *end->slurm->nodes ? end->slurm->nodes : "its nodes";
}

__attribute__((format(printf, 2, 3))) static void end_append(struct verdict *v, const char *format,
                                                             ...)
{
    size_t used = strlen(v->reason);
    va_list args;

    va_start(args, format);
    vsnprintf(v->reason + used, sizeof v->reason - used, format, args);
    va_end(args);
}

static void end_slurm_judge_time(const struct slurm_end *end, struct verdict *v)
{
    long long id = end->slurm->job_id;

    v->state = JOB_FAILED;
    v->goes_on = v->checkpoint > 0;
    v->own_fault = !v->goes_on;
    if (v->goes_on)
        end_append(v, "Slurm's job %lld reached its time limit after step %lld", id,
                   (long long)v->step);
    else
        end_append(v,
                   "Slurm job %lld reached its time limit before it had written a checkpoint: "
                   "increase cluster.time_limit, or write checkpoints more often "
                   "(checkpoint.every_steps)",
                   id);
}

static void end_slurm_judge_state(const struct slurm_end *end, const char *words,
                                  const char *before, struct verdict *v)
{
    end_append(v, "Slurm ended its job %lld on %s: %s [%s]", (long long)end->slurm->job_id,
               end_slurm_nodes(end), words, end->slurm->state);
    if (v->step > 0)
        end_append(v, "; the last step was %lld", (long long)v->step);
    if (v->state == JOB_FAILED && v->who.rank >= 0)
        end_append(v, "; %s", before);
    v->outside = end_slurm_is(end, "NODE_FAIL") || end_slurm_is(end, "BOOT_FAIL") ||
                 end_slurm_is(end, "PREEMPTED");
    v->state =
        end_slurm_is(end, "CANCELLED") || end_slurm_is(end, "REVOKED") ? JOB_CANCELLED : JOB_FAILED;
}

void job_run_slurm_verdict(const struct slurm_end *end, struct verdict *v)
{
    const struct slurm_status *slurm = end->slurm;
    const char *words = slurm_state_words(slurm->state);
    bool stopped = v->state == JOB_CANCELLED;
    bool has_reason = strcmp(slurm->reason, "None") != 0;
    bool not_launched = strcmp(slurm->reason, "JobLaunchFailure") == 0;
    long long id = slurm->job_id, attempt = end->attempt;
    char before[FAILURE_TEXT_BYTES];

    if (v->state == JOB_SUCCEEDED ||
        (end->why == FAILURE_CANCELLED && slurm->phase != SLURM_REFUSED))
        return;
    snprintf(before, sizeof before, "%s", v->reason);
    v->reason[0] = '\0';
    if (slurm->phase == SLURM_REFUSED) {
        v->state = end->why == FAILURE_CANCELLED ? JOB_CANCELLED : JOB_FAILED;
        v->own_fault = true;
        end_append(v, "Slurm rejected the job: %.480s", slurm->words);
    } else if (end_slurm_is(end, "PREEMPTED") || end_slurm_is(end, "NODE_FAIL") ||
               (end_slurm_is(end, "CANCELLED") && end->why == FAILURE_NOT_STOPPED)) {
        end_slurm_judge_state(end, words, before, v);
    } else if (end->why == FAILURE_TIME_LIMIT || end_slurm_is(end, "TIMEOUT") ||
               end_slurm_is(end, "DEADLINE") || (stopped && end->signalled)) {
        end_slurm_judge_time(end, v);
    } else if (words) {
        end_slurm_judge_state(end, words, before, v);
    } else if (v->state == JOB_QUEUED) {
        v->state = JOB_FAILED;
        v->outside = slurm->phase == SLURM_GONE || not_launched;
        end_append(v,
                   "Slurm's job %lld ended [%s%s%s] before a worker reported anything; see "
                   "attempt-%lld/slurm.log",
                   id, slurm->state, has_reason ? ", " : "", has_reason ? slurm->reason : "",
                   attempt);
    } else if (v->state == JOB_FAILED && v->step == 0 && v->who.rank < 0 && !end->begun &&
               end_slurm_is(end, "FAILED")) {
        /* The exit code comes from slurmstepd, as if its folder had vanished, not from mpirun. */
        v->outside = true;
        end_append(v,
                   "Slurm's job %lld ended on %s before its script had begun [%s]; see "
                   "attempt-%lld/slurm.log",
                   id, end_slurm_nodes(end), slurm->state, attempt);
    } else {
        end_append(v, "%s", before);
    }
    /* If Slurm reports a node failure, this was the job's only node. */
    if (*slurm->nodes && !strpbrk(slurm->nodes, "[],") &&
        (end_slurm_is(end, "NODE_FAIL") || end_slurm_is(end, "BOOT_FAIL") || not_launched))
        snprintf(v->bad_node, sizeof v->bad_node, "%.127s", slurm->nodes);
}

void job_run_slurm_put_back(const struct slurm_end *end, struct verdict *v)
{
    if (v->state == JOB_SUCCEEDED || end->why == FAILURE_STALLED)
        return;
    v->state = JOB_FAILED;
    v->outside = true;
    v->own_fault = false;
    v->goes_on = !end->begun; /* nothing had started: does not count as a restart */
    snprintf(v->reason, sizeof v->reason, "Slurm put its job %lld back into the queue",
             (long long)end->slurm->job_id);
    if (end->refused && !v->step)
        end_append(v, ", as its prolog drained %.400s", end->refused);
    else if (end->begun)
        end_append(v, " (requeued, preempted, or a node failed)");
    else
        end_append(v, " before its script had begun (requeued, or a node or its prolog failed)");
    if (v->step)
        end_append(v, " after step %lld", (long long)v->step);
}

/* ---------------------------------------------------------------- the verdict */

/* Returns why this attempt was asked to stop, possibly by an earlier daemon. */
static enum failure_stop end_why(const struct active_job *a)
{
    struct stalled stall;

    if (a->machine.cancel_asked || a->machine.stop_why == FAILURE_CANCELLED ||
        attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_CANCEL))
        return FAILURE_CANCELLED;
    if (a->machine.stop_why == FAILURE_STALLED || stalled_read(a->attempt_dir, &stall))
        return FAILURE_STALLED;
    if (a->machine.stop_why == FAILURE_TIME_LIMIT ||
        attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_LIMIT))
        return FAILURE_TIME_LIMIT;
    return attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_GROW) ? FAILURE_GROWS
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

char *job_run_first_failure(const struct store_job *job)
{
    json_t *failure = job->failure ? json_loads(job->failure, 0, NULL) : NULL;
    char *reason = xstrdup_or_null(json_string_value(json_object_get(failure, "reason")));

    json_decref(failure);
    return reason;
}

static void end_decide(const struct job_manager *m, const struct active_job *a,
                       const struct store_job *job, bool keeps_slurm,
                       struct attempt_outcome *outcome)
{
    char *first = job_run_first_failure(job);
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

    job_state_after_attempt(&a->verdict, &history, outcome);
    free(first);
}

/* ---------------------------------------------------------------- draining a node */

/* Runs on its own thread, because the command may take two seconds and must not block the loop. */
struct drain {
    char *command;
    char node[NODE_NAME_BYTES];
    char reason[NODE_REASON_BYTES];
};

static void *end_run_drain(void *context)
{
    struct drain *d = context;
    struct error e;

    if (node_tell(d->command, d->node, d->reason, &e))
        log_warning("cannot drain node %s: %s", d->node, e.text);
    free(d->command);
    free(d);
    return NULL;
}

static bool end_is_host_of_job(const struct active_job *a, const char *host)
{
    int count;

    if (a->machine.slurm)
        return host_list_place(a->slurm.nodes, host, &count) >= 0;
    return a->hosts.count ? job_hosts_find(&a->hosts, host) != NULL : host_is_here(host, false);
}

/* Calls drain_command for the node blamed in a->verdict, without waiting for it. A job's own output
 * may name any host. Therefore a node is drained only if Slurm itself reports that it failed, or if
 * an administrator's rule has drain-unverified and the output names one of the job's nodes. */
static void end_drain_bad_node(struct job_manager *m, const struct active_job *a)
{
    const struct verdict *v = &a->verdict;
    const char *host = *v->bad_node ? v->bad_node
                       : v->drain == FAILURE_DRAIN_LOG && end_is_host_of_job(a, v->who.host)
                           ? v->who.host
                           : "";
    char node[NODE_NAME_BYTES];
    pthread_t thread;
    struct error e;

    snprintf(node, sizeof node, "%.*s", (int)strcspn(host, "."), host);
    if (v->drain == FAILURE_NO_DRAIN || !m->drain_command || !node_name_is_valid(node))
        return;
    struct drain *d = xcalloc(1, sizeof *d);
    memcpy(d->node, node, sizeof d->node);
    snprintf(d->reason, sizeof d->reason, "job %lld, %s: %.600s", (long long)a->id, v->label,
             v->reason);
    d->command = xstrdup(m->drain_command);
    json_t *fields =
        must_alloc(json_pack("{s:s, s:o}", "host", d->node, "message",
                             json_sprintf("node %s is drained: %s", d->node, d->reason)));
    log_warning("node %s is drained: %s", d->node, d->reason);
    if (store_event_add(m->store, a->id, a->attempt, "warning", fields, clock_now(), &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
    json_decref(fields);
    if (pthread_create(&thread, NULL, end_run_drain, d) == 0) {
        pthread_detach(thread);
        return;
    }
    log_warning("cannot drain node %s: out of memory", d->node);
    free(d->command);
    free(d);
}

/* ---------------------------------------------------------------- storing the end */

/* Returns NAN if Slurm did not measure it or the script was killed. */
static double end_joules(const struct active_job *a)
{
    char *text = a->machine.slurm ? attempt_read_tail(a->attempt_dir, SLURM_ENERGY) : NULL;
    double joules = text ? slurm_energy_read(text) : NAN;

    free(text);
    return joules;
}

static void end_react(struct job_manager *m, struct active_job *a,
                      const struct attempt_outcome *end)
{
    log_info("job %lld: %s%s%s", (long long)a->id, job_state_name(end->to),
             *end->reason ? ": " : "", end->reason);
    if (end->failed) {
        pthread_mutex_lock(&m->mutex);
        failure_rules_count(m->rules, a->verdict.label);
        pthread_mutex_unlock(&m->mutex);
        end_drain_bad_node(m, a);
    }
    if (end->restarts && a->verdict.hosts_missing)
        job_replan_without_hosts(m, a->id, a->attempt_dir);
    if (a->verdict.grows)
        job_replan_with_hosts(m, a->id, a->attempt_dir);
    a->judged = false;
    job_manager_want_queue(m);
}

/* next: NULL if Slurm does not start the job again. */
static int end_store(struct job_manager *m, struct active_job *a, int64_t *next, struct error *e)
{
    struct attempt_outcome end;
    struct store_job job;
    char *by = NULL;
    int status = store_job_get(m->store, a->id, &job, e);

    if (status)
        return status;
    end_decide(m, a, &job, next != NULL, &end);
    store_job_clear(&job);
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
    status = store_steps_speed(m->store, a->id, a->attempt, &row.images_per_sec, e);
    if (!status && end.to == JOB_CANCELLED)
        status = store_job_asked_by(m->store, a->id, a->attempt, &by, e);
    row.change.by = by;
    if (!status)
        status = store_attempt_end(m->store, a->id, &row, e);
    if (!status)
        end_react(m, a, &end);
    free(by);
    json_decref(failure);
    return status;
}

int job_run_end(struct job_manager *m, struct active_job *a, struct error *e)
{
    assert_object(a, ACTIVE_JOB_MAGIC);
    struct launch_exit how = {a->exit_code, a->exit_signal};
    enum failure_stop why = end_why(a);

    if (!a->judged) {
        int status = ingest_catch_up(a->ingest, e);
        if (status)
            return status;
        failure_judge(a->attempt_dir, &how, why, &a->verdict);
        if (a->machine.slurm) {
            struct slurm_end end = end_in_slurm(a, why);
            job_run_slurm_verdict(&end, &a->verdict);
        }
        failure_rules_apply(m->rules, a->attempt_dir, &a->verdict);
    }
    return end_store(m, a, NULL, e);
}

int job_run_end_unstarted(struct job_manager *m, struct active_job *a, struct error *e)
{
    enum error_code code = a->no_start.code;
    /* A full or read-only disk, a locked database, or a lack of memory, descriptors or processes
     * may be temporary: it counts as a restart, whatever a rule says. */
    bool may_pass =
        code == ERR_NO_SPACE || code == ERR_IO || code == ERR_NO_MEMORY || code == ERR_BUSY;

    assert_object(a, ACTIVE_JOB_MAGIC);
    a->verdict = (struct verdict){
        .state = JOB_FAILED,
        .phase = "start",
        .outside = may_pass,
        .own_fault = !may_pass,
        .who = {.rank = -1, .signal = -1, .exit_code = -1}
    };
    snprintf(a->verdict.reason, sizeof a->verdict.reason, "%.*s", FAILURE_TEXT_BYTES - 1,
             a->no_start.text);
    failure_rules_apply(m->rules, NULL, &a->verdict);
    a->verdict.again = FAILURE_AGAIN_USUAL;
    return end_store(m, a, NULL, e);
}

/* ---------------------------------------------------------------- requeued by Slurm */

int job_run_judge_put_back(struct job_manager *m, struct active_job *a, bool *last, struct error *e)
{
    assert_object(a, ACTIVE_JOB_MAGIC);
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
    if (!status) {
        in_slurm.refused = refused;
        failure_judge(a->attempt_dir, &unknown, why, &a->verdict);
        job_run_slurm_put_back(&in_slurm, &a->verdict);
        failure_rules_apply(m->rules, a->attempt_dir, &a->verdict);
        a->judged = true;
        end_decide(m, a, &job, true, &end);
        *last = end.to != JOB_QUEUED;
    }
    free(refused);
    store_job_clear(&job);
    return status;
}

int job_run_end_put_back(struct job_manager *m, struct active_job *a, int64_t next, struct error *e)
{
    int status = end_store(m, a, &next, e);

    assert_object(a, ACTIVE_JOB_MAGIC);
    a->judged = false;
    return status;
}

/* ---------------------------------------------------------------- after the end */

void job_run_finish(struct job_manager *m, struct active_job *a)
{
    int64_t threads = a->spec ? job_threads(a->spec, m->slots) : 0;
    struct error e;

    assert_object(a, ACTIVE_JOB_MAGIC);
    if (a->verdict.state == JOB_SUCCEEDED)
        job_estimate_finished(m->store, a->id, threads, clock_now());
    /* For tools that read the run directory; the HTTP routes create their own. */
    if (export_write(m->store, a->id, &e))
        log_warning("job %lld: cannot export its logs: %s", (long long)a->id, e.text);
    cleanup_run(m, a);
}
