#include "daemon/job/job_run.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/job/job_document.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "common/json.h"
#include "daemon/job/job_resources.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_replan.h"
#include "daemon/job/job_run_end.h"
#include "daemon/job/resume_point.h"
#include "daemon/job/run_dir.h"
#include "daemon/job/run_dir_cleanup.h"
#include "daemon/launch/slurm_script.h"
#include "daemon/store/attempt.h"
#include "daemon/store/event.h"
#include "daemon/store/job_change.h"
#include "launch/hosts.h"

#define COMPLAIN_SECONDS  10
#define TRY_LATER_SECONDS 1.0
#define GRACE_STEPS       3 /* the current step and a checkpoint */

struct job_start {
    struct store_job job;
    char *mpirun, *worker, *threads_source;
    struct launch_request request;
};

/* ---------------------------------------------------------------- the object */

struct active_job *job_run_create(struct job_manager *m, const struct store_job *job,
                                  enum job_phase phase)
{
    bool slurm = job->slurm || (job->launcher && strcmp(job->launcher, "slurm") == 0);
    struct active_job *a = xcalloc(1, sizeof *a);
    struct error e;

    assert_object(m, JOB_MANAGER_MAGIC);
    *a = (struct active_job){
        .magic = ACTIVE_JOB_MAGIC,
        .id = job->id,
        .attempt = job->attempt,
        .slots = job->slots,
        .run_dir = xstrdup(job->run_dir),
        .attempt_dir = xasprintf("%s/attempt-%lld", job->run_dir, (long long)job->attempt),
        .launcher = slurm ? &launcher_slurm : &launcher_local,
        .watch = -1,
        .exit_code = -1,
        .exit_signal = -1,
    };
    a->process.pidfd = a->process.gate = -1;
    a->slurm.exit_code = a->slurm.exit_signal = -1;
    a->machine = (struct job_machine){
        .phase = phase,
        .slurm = slurm,
        .resumes = job->resumes,
        .may_have_run = job->state != JOB_QUEUED,
        .cancel_asked = phase == PHASE_LOST && store_job_cancel_asked(job),
        .due = INFINITY,
        .limit_at = INFINITY,
        .limit_seconds = job->time_limit_seconds,
    };
    a->spec = store_job_take_document(job, &e);
    if (a->spec)
        job_hosts_of(a->spec, a->spec->cluster.workers_per_node * job_threads(a->spec, m->slots),
                     &a->hosts);
    else /* a running job is followed regardless */
        log_warning("job %lld: cannot determine its hosts: %s", (long long)a->id, e.text);
    a->grow.asking = SPAWN_NONE;
    a->grow.wanted = job->wanted ? json_loads(job->wanted, 0, NULL) : NULL;
    a->grow.hosts = json_object_get(json_object_get(a->grow.wanted, "cluster"), "hosts");
    return a;
}

static void run_free_start(struct active_job *a)
{
    if (!a->start)
        return;
    store_job_clear(&a->start->job);
    free(a->start->mpirun);
    free(a->start->worker);
    free(a->start->threads_source);
    free(a->start);
    a->start = NULL;
}

void job_run_destroy(struct job_manager *m, struct active_job *a)
{
    struct active_job **at = &m->active;

    assert_object_ends(a, ACTIVE_JOB_MAGIC);
    while (*at && *at != a)
        at = &(*at)->next;
    if (*at)
        *at = a->next;
    if (a->watch >= 0)
        inotify_rm_watch(m->inotify_fd, a->watch);
    slurm_forget(a->process.slurm);
    launch_process_close(&a->process);
    ingest_destroy(a->ingest);
    spawn_clear(&a->grow.asking);
    json_decref(a->grow.wanted);
    json_decref(a->grow.changes);
    job_spec_destroy(a->spec);
    job_hosts_clear(&a->hosts);
    run_free_start(a);
    free(a->slurm_stored);
    free(a->run_dir);
    free(a->attempt_dir);
    free(a);
}

void job_run_add(struct job_manager *m, struct active_job *a)
{
    struct active_job **last = &m->active;

    assert_object(a, ACTIVE_JOB_MAGIC);
    assert_always(!a->next && !job_run_find(m, a->id));
    while (*last)
        last = &(*last)->next;
    *last = a;
    job_manager_want(m, TASK_STOP_LOSERS, clock_monotonic() + 1);
}

struct active_job *job_run_find(const struct job_manager *m, int64_t id)
{
    struct active_job *a = m->active;

    assert_object(m, JOB_MANAGER_MAGIC);
    while (a && a->id != id)
        a = a->next;
    return a;
}

bool job_run_is_under_way(const struct active_job *a)
{
    assert_object(a, ACTIVE_JOB_MAGIC);
    return a->machine.phase == PHASE_RUNNING || a->machine.phase == PHASE_IN_SLURM;
}

void job_run_complain(struct active_job *a, const char *what, const struct error *e)
{
    double now = clock_monotonic();

    assert_object(a, ACTIVE_JOB_MAGIC);
    if (a->complained_at && now - a->complained_at < COMPLAIN_SECONDS)
        return;
    a->complained_at = now;
    log_error("job %lld: %s: %s", (long long)a->id, what, e->text);
}

/* Starts reading the events of this attempt. Takes ownership of folder and ingest. */
static void run_follow(struct job_manager *m, struct active_job *a, int64_t attempt, char *folder,
                       struct ingest *ingest)
{
    if (a->watch >= 0)
        inotify_rm_watch(m->inotify_fd, a->watch);
    ingest_destroy(a->ingest);
    free(a->attempt_dir);
    a->ingest = ingest;
    a->attempt_dir = folder;
    a->attempt = attempt;
    a->watch = m->inotify_fd < 0
                   ? -1
                   : inotify_add_watch(m->inotify_fd, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
}

/* Creates an attempt's folder and opens its events. The caller frees *folder, also after an
 * error. */
static int run_open_attempt(struct job_manager *m, const struct active_job *a, int64_t attempt,
                            char **folder, struct ingest **ingest, struct error *e)
{
    *folder = xasprintf("%s/attempt-%lld", a->run_dir, (long long)attempt);
    int status = file_make_dirs(*folder, e);

    return status ? status : ingest_create(m->store, a->id, attempt, *folder, ingest, e);
}

/* ---------------------------------------------------------------- preparing a start */

double job_run_grace_seconds(const struct job_limits *limits, const struct store_job *job)
{
    double step = job->images_per_sec > 0 && job->global_batch > 0
                      ? (double)job->global_batch / job->images_per_sec
                      : 0;
    return fmax(limits->cancel_grace_seconds, GRACE_STEPS * step);
}

static int run_find_programs(const struct job_manager *m, char **mpirun, char **worker,
                             struct error *e)
{
    int status = launch_find_program(m->mpirun, mpirun, e);
    if (status)
        return error_set(e, e->code,
                         "cannot run mpirun (%s): apt-get install openmpi-bin, or set mpirun= "
                         "in traind.conf",
                         strcmp(m->mpirun, "mpirun") ? m->mpirun : "not found in PATH");
    status = launch_find_program(m->worker, worker, e);
    if (status)
        return error_set(e, e->code,
                         "cannot run the worker program %s: install traind completely, or set "
                         "worker= in traind.conf",
                         m->worker);
    return 0;
}

/* Two bound jobs would be bound to the same cores, so binding requires that the job has all
 * cores. */
static enum job_bind run_bind(const struct job_manager *m, const struct job_spec *spec,
                              int64_t slots)
{
    int64_t need = spec->cluster.workers_per_node * job_threads(spec, m->slots);
    bool alone = job_spec_names_hosts(spec)
                     ? 2 * need > job_hosts_slots(spec, need)
                     : 2 * slots > m->slots && m->slots <= launch_node_slots(false);

    if (spec->cluster.bind != JOB_BIND_AUTO || spec->cluster.launcher == JOB_LAUNCHER_SLURM)
        return spec->cluster.bind;
    return alone ? JOB_BIND_AUTO : JOB_BIND_NONE;
}

static double run_lead_seconds(const struct job_limits *limits, const struct store_job *job)
{
    struct store_job guess = *job;

    if (isnan(guess.images_per_sec) && guess.predicted_seconds > 0 && guess.train_steps > 0)
        guess.images_per_sec =
            (double)guess.global_batch * (double)guess.train_steps / guess.predicted_high_seconds;
    double lead = job_run_grace_seconds(limits, &guess);
    return isnan(job->time_limit_seconds) ? lead : fmin(lead, job->time_limit_seconds / 2);
}

static struct launch_request run_request_for(struct job_manager *m, const struct job_limits *limits,
                                             const struct store_job *job,
                                             const struct job_spec *spec)
{
    struct placement_machine machine = {0};

    if (!job_spec_names_hosts(spec)) /* otherwise its hosts are probed when it starts */
        placement_read_mine(&machine);
    return (struct launch_request){
        .job_id = job->id,
        .run_dir = job->run_dir,
        .spec = spec,
        .threads = job_threads(spec, m->slots),
        .bind = run_bind(m, spec, job->slots),
        .machine = machine,
        .agent = m->agent,
        .data_roots = open_beneath_roots(),
        .stall_seconds = limits->stall_seconds,
        .resumes = job->resumes,
        .slurm = &m->slurm_settings,
        .cluster = m->slurm,
        .created_at = job->created_at,
        .time_limit_seconds = job->time_limit_seconds,
        .lead_seconds = run_lead_seconds(limits, job),
    };
}

/* A job for Slurm accepted by an older version may lack threads_per_worker. */
static int run_check_threads(const struct job_manager *m, struct job_spec *spec, const char *by,
                             struct error *e)
{
    struct problems problems = {0};
    struct job_cores cores;
    char key[PROBLEM_KEY_BYTES];
    int status = 0;

    if (job_share_cores(m, spec, by, &cores, &problems))
        status = error_set(e, ERR_INVALID, "%s: %s", problem_key(problems.items[0].pointer, key),
                           problems.items[0].message);
    problems_clear(&problems);
    return status;
}

static char *run_threads_source(const json_t *plan)
{
    const json_t *threads = json_object_get(json_object_get(plan, "explain"), "threads_per_worker");
    const char *source = json_string_value(json_object_get(threads, "source"));
    const json_t *inputs = json_object_get(threads, "inputs");
    bool shared =
        json_object_get(inputs, "node_cores") || json_object_get(inputs, "node_hardware_threads");

    return shared ? xstrdup_or_null(source) : NULL;
}

/* A run that starts from scratch must not find checkpoints of attempts unknown to the database. */
static int run_put_checkpoints_aside(struct job_manager *m, const struct store_job *job,
                                     int64_t last, struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX], message[PATH_MAX + 200];
    struct error why;

    int64_t newest = job->resumes ? 0 : resume_point_newest_step(job->run_dir, e);
    if (newest <= 0)
        return (int)newest;
    if (file_path(from, e, "%s/checkpoints", job->run_dir) ||
        file_path(to, e, "%s/checkpoints-to-attempt-%lld", job->run_dir, (long long)last))
        return -(int)e->code;
    if (rename(from, to))
        return error_set_errno(e, errno, "cannot rename %s to %s", from, to);
    snprintf(message, sizeof message,
             "the run directory held checkpoints of attempts that the database does not know (was "
             "it restored from a backup?): they have been moved to %s",
             to);
    log_warning("job %lld: %s", (long long)job->id, message);
    json_t *fields = json_pack("{s:s}", "message", message);
    if (store_event_add(m->store, job->id, job->attempt, "warning", fields, clock_now(), &why))
        log_warning("job %lld: cannot store a warning: %s", (long long)job->id, why.text);
    json_decref(fields);
    return 0;
}

/* A database restored from a backup may not know attempts that are still running. */
static int run_settle_unknown_attempts(struct job_manager *m, const struct store_job *job,
                                       struct error *e)
{
    int64_t last = run_dir_last_attempt(job->run_dir);

    for (int64_t attempt = job->attempt + 1; attempt <= last; attempt++) {
        struct launch_process unknown = {.pidfd = -1, .gate = -1};
        char folder[PATH_MAX];
        file_path(folder, e, "%s/attempt-%lld", job->run_dir, (long long)attempt);
        int processes = launcher_local.survivors(&unknown, folder);
        long long pid = processes ? (long long)unknown.members.items[0].pid : 0;
        launch_process_close(&unknown);
        if (processes)
            return error_set(
                e, ERR_CONFLICT,
                "attempt %lld of job %lld, which the database does not know (was it restored from "
                "a backup?), is still running as process %lld: end it, then resume the job",
                (long long)attempt, (long long)job->id, pid);
    }
    return run_put_checkpoints_aside(m, job, last, e);
}

/* ---------------------------------------------------------------- starting */

void job_run_make_ready(struct active_job *a, struct store_job *job)
{
    assert_object(a, ACTIVE_JOB_MAGIC);
    a->start = xcalloc(1, sizeof *a->start);
    a->start->job = *job;
    *job = (struct store_job){0};
}

static int run_prepare(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct job_start *s = a->start;

    if (!a->spec && !(a->spec = store_job_take_document(&s->job, e)))
        return -(int)e->code;
    int status = run_check_threads(m, a->spec, s->job.submitted_by, e);
    s->threads_source = run_threads_source(store_job_plan(&s->job));
    if (!status)
        status = run_find_programs(m, &s->mpirun, &s->worker, e);
    if (!status) {
        pthread_mutex_lock(&m->files);
        status = run_dir_prepare(m->store, &s->job, e);
        pthread_mutex_unlock(&m->files);
    }
    if (!status)
        status = run_settle_unknown_attempts(m, &s->job, e);
    if (status)
        return status;
    s->request = run_request_for(m, &m->limits, &s->job, a->spec);
    s->request.mpirun = s->mpirun;
    s->request.worker = s->worker;
    s->request.threads_source = s->threads_source;
    return 0;
}

static int run_store_attempt(struct job_manager *m, struct active_job *a, struct error *e)
{
    const struct job_spec *spec = a->spec;
    long long world = job_spec_world_size(spec), nodes = spec->cluster.nodes;
    const struct store_job *job = &a->start->job;
    const char *verb = job->resumes ? "continues with" : "starts";
    char reason[192];
    struct store_state_change change = {a->machine.slurm ? JOB_QUEUED : JOB_STARTING, reason,
                                        clock_now(), NULL};

    if (a->machine.slurm)
        snprintf(reason, sizeof reason, "is handed to Slurm: %lld worker%s on %lld node%s", world,
                 plural(world), nodes, plural(nodes));
    else if (job_spec_names_hosts(spec))
        snprintf(reason, sizeof reason, "%s %lld worker%s on %lld of %zu host%s%s%s", verb, world,
                 plural(world), nodes, spec->cluster.host_count,
                 plural((long long)spec->cluster.host_count), job->grows_to ? "; grows to " : "",
                 job->grows_to ? job->grows_to : "");
    else
        snprintf(reason, sizeof reason, "%s %lld worker%s on %lld of %lld slot%s", verb, world,
                 plural(world), (long long)a->slots, (long long)m->slots, plural(m->slots));
    int status = store_job_begin_attempt(m->store, a->id, &change, run_dir_last_attempt(a->run_dir),
                                         &a->attempt, e);
    a->start->request.attempt = a->attempt;
    if (status)
        log_info("job %lld was not started: %s", (long long)a->id, e->text);
    return status;
}

static char *run_slurm_json(const char *name, const struct slurm_status *status)
{
    json_t *id = status->job_id ? json_integer(status->job_id) : json_null();
    json_t *json =
        must_alloc(json_pack("{s:o, s:s, s:s*, s:s*, s:s*}", "job_id", id, "name", name, "state",
                             *status->state ? status->state : "SUBMITTING", "reason",
                             *status->reason ? status->reason : "None", "nodes", status->nodes));
    char *text = must_alloc(json_dumps(json, JSON_COMPACT));

    json_decref(json);
    return text;
}

static int run_store_launcher(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct slurm_status none = {0};

    if (!a->process.slurm)
        return store_job_set_launcher(m->store, a->id, a->process.pid, a->process.start, e);
    char *text = run_slurm_json(slurm_name(a->process.slurm), &none);
    int status = store_job_hand_to_slurm(m->store, a->id, a->attempt, text, e);
    free(text);
    return status;
}

void job_run_store_slurm(struct job_manager *m, struct active_job *a)
{
    char *text = run_slurm_json(slurm_name(a->process.slurm), &a->slurm);
    struct error e;

    assert_object(a, ACTIVE_JOB_MAGIC);
    if (a->slurm_stored && strcmp(text, a->slurm_stored) == 0) {
        free(text);
    } else if (store_job_set_slurm(m->store, a->id, text, &e)) {
        log_warning("job %lld: cannot store its state in Slurm: %s", (long long)a->id, e.text);
        free(text);
    } else {
        free(a->slurm_stored);
        a->slurm_stored = text;
    }
}

static int run_follow_attempt(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct ingest *ingest = NULL;
    char *folder;
    int status = run_open_attempt(m, a, a->attempt, &folder, &ingest, e);

    if (status)
        free(folder);
    else
        run_follow(m, a, a->attempt, folder, ingest);
    return status;
}

static void run_open_gate(struct active_job *a)
{
    bool launched = a->start != NULL; /* otherwise an earlier daemon submitted it to Slurm */

    if (a->process.slurm) {
        slurm_release(a->process.slurm);
    } else if (launched) {
        launch_release(&a->process);
        log_info("job %lld: attempt %lld started, process %d", (long long)a->id,
                 (long long)a->attempt, (int)a->process.pid);
    }
    run_free_start(a);
}

static void run_abandon(struct active_job *a)
{
    log_warning("job %lld was not started: %s", (long long)a->id, a->no_start.text);
    if (!a->process.slurm)
        launch_abandon(&a->process);
    slurm_forget(a->process.slurm);
    a->process = (struct launch_process){.pidfd = -1, .gate = -1};
}

int job_slurm_script(struct job_manager *m, const struct job_spec *spec, const struct plan *plan,
                     char **text, struct error *e)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    struct store_job_size size = job_size(m, spec, plan);
    struct store_job job = {.train_steps = size.train_steps,
                            .global_batch = size.global_batch,
                            .images_per_sec = NAN,
                            .time_limit_seconds = size.time_limit_seconds,
                            .predicted_seconds = size.predicted_seconds,
                            .predicted_high_seconds = size.predicted_high_seconds};
    struct job_limits limits = job_manager_limits(m);
    struct launch_request request = run_request_for(m, &limits, &job, spec);
    char *mpirun = NULL, *worker = NULL;
    int status = run_find_programs(m, &mpirun, &worker, e);

    *text = NULL;
    char *document = json_take_text(job_spec_to_json(spec));
    json_t *explained = plan_to_json(plan);
    char *source = run_threads_source(explained);
    json_decref(explained);
    request.threads_source = source;
    request.attempt = 1;
    request.mpirun = mpirun;
    request.worker = worker;
    request.by_hand = true;
    request.document = document;
    if (!status)
        status = slurm_script(&request, text, e);
    free(document);
    free(source);
    free(mpirun);
    free(worker);
    return status;
}

/* ---------------------------------------------------------------- state changes */

static int run_set_state(struct job_manager *m, const struct active_job *a, enum job_state to,
                         const char *reason, const char *by, struct error *e)
{
    struct store_state_change change = {to, reason, clock_now(), by};
    int status = store_job_set_state(m->store, a->id, &change, e);

    if (!status && to != JOB_STARTING)
        log_info("job %lld: %s: %s", (long long)a->id, job_state_name(to), reason);
    return status;
}

/* Fails a job outside of an attempt. The reason also includes the failure of an earlier attempt. */
static int run_fail(struct job_manager *m, const struct active_job *a, const char *why,
                    struct error *e)
{
    char reason[ERROR_TEXT_BYTES + FAILURE_TEXT_BYTES + 320];
    struct store_job job;
    int status = store_job_get(m->store, a->id, &job, e);

    if (status)
        return status;
    char *first = job_run_first_failure(&job);
    snprintf(reason, sizeof reason, "%s%s%.*s", why, first ? "; before that: " : "",
             first ? (int)failure_cause_length(first) : 0, first ? first : "");
    free(first);
    store_job_clear(&job);
    return run_set_state(m, a, JOB_FAILED, reason, NULL, e);
}

static int run_store_unfit(struct job_manager *m, struct active_job *a, struct error *e)
{
    char reason[ERROR_TEXT_BYTES + 320];
    const char *why = a->no_start.text;

    snprintf(reason, sizeof reason,
             "needs %lld slots, but this node now has only %lld%s%s: submit it again with fewer "
             "workers, or set slots in traind.conf",
             (long long)a->slots, (long long)m->slots, *why ? "; " : "", why);
    return run_fail(m, a, reason, e);
}

static int run_store_cancelled(struct job_manager *m, struct active_job *a, struct error *e)
{
    char *by = NULL;
    int status = store_job_asked_by(m->store, a->id, a->attempt, &by, e);

    if (!status)
        status =
            run_set_state(m, a, JOB_CANCELLED, "cancelled on request before it started", by, e);
    free(by);
    return status;
}

static int run_store_started(struct job_manager *m, struct active_job *a, struct error *e)
{
    char reason[512];

    snprintf(reason, sizeof reason, "Slurm has started its job %lld on %s",
             (long long)a->slurm.job_id, *a->slurm.nodes ? a->slurm.nodes : "its nodes");
    return run_set_state(m, a, JOB_STARTING, reason, NULL, e);
}

static int run_say_stopping(struct job_manager *m, struct active_job *a, struct error *e)
{
    bool cancelled =
        a->machine.cancel_asked || attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_CANCEL);
    const char *reason =
        a->machine.phase == PHASE_IN_SLURM ? "being cancelled in Slurm's queue"
        : cancelled ? "being cancelled: the workers end after the step they are in"
        : attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_GROW)
            ? "more of its hosts answer and are free: the workers end after the step they are in, "
              "with a checkpoint, to go on with more"
            : "at its time limit: the workers end after the step they are in, with a checkpoint";
    struct store_job job;
    int status = store_job_get(m->store, a->id, &job, e);

    if (status)
        return status;
    struct store_state_change same = {job.state, reason, clock_now(), NULL};
    log_info("job %lld: %s", (long long)a->id, reason);
    status = store_job_set_state(m->store, a->id, &same, e);
    store_job_clear(&job);
    return status;
}

static int run_mark_stall(struct job_manager *m, struct active_job *a, struct error *e)
{
    json_t *fields =
        must_alloc(json_pack("{s:s, s:o, s:o*, s:s*}", "message", a->stall.reason,
                             "stalled_seconds", json_integer(m->limits.stall_seconds), "rank",
                             a->stall.rank >= 0 ? json_integer(a->stall.rank) : NULL, "host",
                             *a->stall.host ? a->stall.host : NULL));
    struct error ignored;
    struct stalled before;

    log_warning("job %lld is being ended: %s", (long long)a->id, a->stall.reason);
    /* If the file exists, an earlier daemon has stored the event. */
    if (!stalled_read(a->attempt_dir, &before) &&
        store_event_add(m->store, a->id, a->attempt, "warning", fields, clock_now(), &ignored))
        job_run_complain(a, "cannot store its stall", &ignored);
    json_decref(fields);
    return stalled_keep(a->attempt_dir, &a->stall, e);
}

static int run_mark_grow(const struct active_job *a, struct error *e)
{
    char path[PATH_MAX];

    if (attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_GROW)) /* by an earlier daemon */
        return 0;
    int status = file_path(path, e, "%s/" ATTEMPT_FLAG_GROW, a->attempt_dir);
    return status ? status : json_file_write(path, a->grow.changes, e);
}

static int run_store_put_back(struct job_manager *m, struct active_job *a, struct error *e)
{
    int64_t next = a->attempt + 1;
    struct ingest *ingest = NULL;
    char *folder;
    int status = run_open_attempt(m, a, next, &folder, &ingest, e);

    if (!status)
        status = job_run_end_put_back(m, a, next, e);
    a->judged = false;
    if (status) {
        job_run_complain(a, "cannot store its restart by Slurm", e);
        ingest_destroy(ingest);
        free(folder);
        return status;
    }
    run_follow(m, a, next, folder, ingest);
    free(a->slurm_stored);
    a->slurm_stored = NULL;
    return 0;
}

/* ---------------------------------------------------------------- actions */

static int run_stop(struct active_job *a, enum launch_stop how)
{
    if (how == LAUNCH_STOP_NOW && a->machine.stop == STOP_ASKED)
        log_info("job %lld: the workers did not stop in time, asking %s to end them",
                 (long long)a->id, a->machine.slurm ? "Slurm" : "mpirun");
    if (how == LAUNCH_STOP_KILL && a->machine.stop == STOP_TERMINATED &&
        a->machine.phase == PHASE_RUNNING)
        log_info("job %lld: killing its processes", (long long)a->id);
    a->launcher->stop(&a->process, a->attempt_dir, how);
    return 0;
}

static int run_act(struct job_manager *m, struct active_job *a, enum job_action action,
                   struct error *e)
{
    int status = 0;

    switch (action) {
    case DO_PREPARE:
        return run_prepare(m, a, e);
    case DO_STORE_ATTEMPT:
        return run_store_attempt(m, a, e);
    case DO_START_LAUNCHER:
        return a->launcher->start(&a->start->request, &a->process, e);
    case DO_STORE_LAUNCHER:
        return run_store_launcher(m, a, e);
    case DO_FOLLOW:
        return run_follow_attempt(m, a, e);
    case DO_OPEN_GATE:
        run_open_gate(a);
        return 0;
    case DO_ABANDON_LAUNCHER:
        run_abandon(a);
        return 0;
    case DO_STORE_NO_START:
        status = job_run_end_unstarted(m, a, e);
        if (status && e->code != ERR_CONFLICT && e->code != ERR_NOT_FOUND)
            job_run_complain(a, "cannot store its end yet", e);
        return status;
    case DO_TRY_LATER:
        job_manager_want(m, TASK_QUEUE, clock_monotonic() + TRY_LATER_SECONDS);
        return 0;
    case DO_SHRINK:
        status = job_replan_for_slots(m, a->id, e);
        if (status)
            a->no_start = *e;
        else
            job_manager_want_queue(m);
        return status;
    case DO_STORE_UNFIT:
        return run_store_unfit(m, a, e);
    case DO_STORE_CANCELLED:
        return run_store_cancelled(m, a, e);
    case DO_MARK_LIMIT:
        return attempt_flag_write(a->attempt_dir, ATTEMPT_FLAG_LIMIT, e);
    case DO_MARK_STALL:
        return run_mark_stall(m, a, e);
    case DO_MARK_GROW:
        return run_mark_grow(a, e);
    case DO_ASK_WORKERS:
        return run_stop(a, LAUNCH_STOP_AFTER_STEP);
    case DO_TERMINATE:
        return run_stop(a, LAUNCH_STOP_NOW);
    case DO_KILL:
        return run_stop(a, LAUNCH_STOP_KILL);
    case DO_STORE_STOPPING:
        return run_say_stopping(m, a, e);
    case DO_STORE_STARTED:
        return run_store_started(m, a, e);
    case DO_STORE_PUT_BACK:
        return run_store_put_back(m, a, e);
    case DO_CANCEL_IN_SLURM:
        slurm_cancel(a->process.slurm);
        return 0;
    case DO_DISOWN_IN_SLURM:
        return slurm_disown(a->process.slurm)
                   ? 0
                   : error_set(e, ERR_CONFLICT, "job %lld has started in Slurm", (long long)a->id);
    case DO_STORE_END:
        status = job_run_end(m, a, e);
        if (status)
            job_run_complain(a, "cannot store its end yet", e);
        return status;
    case DO_FINISH:
        job_run_finish(m, a);
        return 0;
    case DO_STORE_BACK:
        return run_set_state(m, a, JOB_QUEUED, "the daemon ended before it had launched the job",
                             NULL, e);
    case DO_STORE_LOST:
        return run_fail(m, a, a->no_start.text, e);
    case DO_FORGET:
        job_run_destroy(m, a);
        cleanup_keep_limits(m);
        return 0;
    case DO_NOTHING:
    case DO_STORE_CANCEL_REQUEST: /* handled by job_cancel */
    case DO_MARK_CANCEL:
    case DO_WAKE_LOOP:
        break;
    }
    return 0;
}

struct run_context {
    struct job_manager *m;
    struct active_job *a;
};

static int run_act_of_machine(void *context, enum job_action action, struct error *e)
{
    struct run_context *c = context;
    struct active_job *a = c->a;
    long long id = a->id;
    int status = run_act(c->m, a, action, e);

    if (status && action >= DO_PREPARE && action <= DO_OPEN_GATE)
        a->no_start = *e;
    if (status && job_state_action_is_optional(action))
        log_warning("job %lld: %s", id, e->text);
    return status;
}

int job_run_dispatch(struct job_manager *m, struct active_job *a,
                     const struct job_observation *seen, struct error *e)
{
    struct run_context context = {m, a};

    assert_object(a, ACTIVE_JOB_MAGIC);
    return job_state_machine_step(&a->machine, seen, run_act_of_machine, &context, e);
}
