#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "common/open_beneath.h"
#include "common/preset.h"
#include "daemon/job/manager.h"
#include "daemon/job/run_dir.h"
#include "daemon/launch/hosts.h"
#include "daemon/launch/slurm_script.h"

#define STORE_AGAIN_SECONDS 1.0 /* an end that could not be stored is stored again after this */

/* ---------------------------------------------------------------- a start that fails */

/* A full or read-only disk, no memory, no descriptors or processes left: it may be better later. */
static bool is_passing(const struct error *e)
{
    return e->code == ERR_NO_SPACE || e->code == ERR_IO || e->code == ERR_NO_MEMORY;
}

/* As the end of an attempt: what may pass counts as a restart. */
static int store_failed_start(struct job_manager *m, int64_t id, int64_t attempt,
                              const struct error *why, struct error *e)
{
    struct active_job a = {.id = id, .attempt = attempt, .exit_code = -1, .exit_signal = -1};
    struct verdict verdict = {
        .state = JOB_FAILED,
        .phase = "start",
        .outside = is_passing(why),
        .own_fault = !is_passing(why),
        .who = {.rank = -1, .signal = -1, .exit_code = -1}
    };

    snprintf(verdict.reason, sizeof verdict.reason, "%.*s", FAILURE_TEXT_BYTES - 1, why->text);
    return job_store_end(m, &a, &verdict, false, e);
}

/* The disk that the start failed for may be the database's. */
static void keep_failed_start(struct job_manager *m, int64_t id, int64_t attempt,
                              const struct error *why, const struct error *e)
{
    struct failed_start *f = malloc(sizeof *f);

    log_error("job %lld: its end cannot be stored yet: %s", (long long)id, e->text);
    m->queue_next_at = fmin(m->queue_next_at, clock_monotonic() + STORE_AGAIN_SECONDS);
    if (!f)
        return; /* a daemon after this one finds it */
    *f = (struct failed_start){m->failed_starts, id, attempt, *why};
    m->failed_starts = f;
}

void job_store_failed_starts(struct job_manager *m)
{
    struct failed_start **at = &m->failed_starts;
    struct error e;

    while (*at) {
        struct failed_start *f = *at;
        if (store_failed_start(m, f->id, f->attempt, &f->why, &e) && e.code != ERR_CONFLICT &&
            e.code != ERR_NOT_FOUND) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        free(f);
    }
    if (m->failed_starts)
        m->queue_next_at = fmin(m->queue_next_at, clock_monotonic() + STORE_AGAIN_SECONDS);
}

/* attempt: what was begun; 0: none, the job is still queued, and is looked at again. */
static void fail(struct job_manager *m, const struct store_job *job, int64_t attempt,
                 const struct error *why)
{
    struct error e;
    int status = store_failed_start(m, job->id, attempt ? attempt : job->attempt, why, &e);

    log_warning("job %lld was not started: %s", (long long)job->id, why->text);
    m->look_at_queue = m->look_at_queue || status == 0;
    if (status && e.code != ERR_CONFLICT)
        keep_failed_start(m, job->id, attempt ? attempt : job->attempt, why, &e);
}

/* ---------------------------------------------------------------- what it takes */

struct job_spec *job_stored_spec(const struct store_job *job, struct error *e)
{
    struct problems problems = {0};
    json_t *document = json_document_parse(job->spec, strlen(job->spec), e);
    struct job_spec *spec = NULL;

    if (document)
        spec = job_spec_parse(document, preset_lookup, NULL, &problems, NULL);
    if (document && !spec) {
        char *text = problems_to_text(&problems);
        error_set(e, ERR_INVALID, "the stored job document is not valid in this version: %s",
                  text ? text : "");
        free(text);
    }
    problems_clear(&problems);
    json_decref(document);
    return spec;
}

static int find_programs(const struct job_manager *m, char **mpirun, char **worker, struct error *e)
{
    int status = launch_find_program(m->mpirun, mpirun, e);
    if (status)
        return error_set(e, e->code,
                         "mpirun cannot be run (%s): apt-get install openmpi-bin, or set mpirun= "
                         "in traind.conf",
                         strcmp(m->mpirun, "mpirun") ? m->mpirun : "not found in PATH");
    status = launch_find_program(m->worker, worker, e);
    if (status)
        return error_set(e, e->code,
                         "the worker program %s cannot be run: install traind completely, or set "
                         "worker= in traind.conf",
                         m->worker);
    return 0;
}

/* In Slurm the time begins when Slurm says so. */
static double limit_at(const struct store_job *job, const struct launch_process *process)
{
    if (isnan(job->time_limit_seconds) || process->slurm)
        return INFINITY;
    return clock_monotonic() + job->time_limit_seconds - launch_elapsed_seconds(process);
}

int job_open_attempt(struct job_manager *m, struct active_job *a, int64_t attempt, struct error *e)
{
    char *folder = NULL;
    struct ingest *ingest = NULL;

    if (asprintf(&folder, "%s/attempt-%lld", a->run_dir, (long long)attempt) < 0)
        return error_set(e, ERR_NO_MEMORY, "no memory to follow job %lld", (long long)a->id);
    int status = file_make_dirs(folder, e);
    if (!status)
        status = ingest_create(m->store, a->id, attempt, folder, &ingest, e);
    if (status) {
        free(folder);
        return status;
    }
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
    return 0;
}

/* A job that runs is followed even if its document cannot be read any more. */
static void learn_hosts(struct job_manager *m, struct active_job *a)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, a->id, &job, &e)) {
        log_warning("job %lld: its hosts are not known: %s", (long long)a->id, e.text);
        return;
    }
    struct job_spec *spec = job_stored_spec(&job, &e);
    if (!spec || !job_hosts_of(spec, m->slots, &a->hosts))
        log_warning("job %lld: its hosts are not known: %s", (long long)a->id, e.text);
    job_spec_destroy(spec);
    store_job_clear(&job);
}

/* One that was never in the manager's list; its process is still the caller's. */
static void free_unfollowed(struct active_job *a)
{
    if (!a)
        return;
    job_hosts_clear(&a->hosts);
    free(a->run_dir);
    free(a);
}

struct active_job *job_follow(struct job_manager *m, const struct store_job *job, int64_t attempt,
                              const struct launch_process *process, struct error *e)
{
    struct active_job *a = calloc(1, sizeof *a);

    if (a)
        *a = (struct active_job){
            .id = job->id,
            .slots = job->slots,
            .launcher = process->slurm ? &launcher_slurm : &launcher_local,
            .process = *process,
            .watch = -1,
            .exit_code = -1,
            .exit_signal = -1,
            .time_limit_seconds = job->time_limit_seconds,
            .waits = process->slurm && job->state == JOB_QUEUED,
            .slurm = {.exit_code = -1, .exit_signal = -1},
            .limit_at = limit_at(job, process)
        };
    if (a)
        learn_hosts(m, a);
    if (!a || !(a->run_dir = strdup(job->run_dir))) {
        error_set(e, ERR_NO_MEMORY, "no memory to follow job %lld", (long long)job->id);
        free_unfollowed(a);
        return NULL;
    }
    if (job_open_attempt(m, a, attempt, e)) {
        free_unfollowed(a);
        return NULL;
    }
    /* At the end, so that jobs are named in the order of their start. */
    struct active_job **last = &m->active;
    while (*last)
        last = &(*last)->next;
    *last = a;
    return a;
}

void job_forget(struct job_manager *m, struct active_job *a)
{
    struct active_job **at = &m->active;

    while (*at && *at != a)
        at = &(*at)->next;
    if (*at)
        *at = a->next;
    if (a->watch >= 0)
        inotify_rm_watch(m->inotify_fd, a->watch);
    slurm_forget(a->process.slurm);
    launch_process_close(&a->process);
    ingest_destroy(a->ingest);
    free(a->slurm_stored);
    free(a->run_dir);
    free(a->attempt_dir);
    job_hosts_clear(&a->hosts);
    free(a);
}

/* Starts the gated process, stores who it is, and only then lets it go. */
static int launch(struct job_manager *m, const struct store_job *job,
                  const struct launch_request *request, struct error *e)
{
    struct launch_process process;
    int status = launcher_local.start(request, &process, e);

    if (status)
        return status;
    status = store_job_set_launcher(m->store, job->id, process.pid, process.start, e);
    if (!status && !job_follow(m, job, request->attempt, &process, e))
        status = -(int)e->code;
    if (status) {
        launch_abandon(&process);
        return status;
    }
    for (struct active_job *a = m->active; a; a = a->next)
        if (a->id == job->id)
            launch_release(&a->process);
    log_info("job %lld: attempt %lld started, process %d", (long long)job->id,
             (long long)request->attempt, (int)process.pid);
    return 0;
}

/* Handed to Slurm: from now on it is looked for there, also by a daemon after this one. */
static int launch_in_slurm(struct job_manager *m, const struct store_job *job,
                           const struct launch_request *request, struct error *e)
{
    struct launch_process process;
    struct slurm_status none = {0};
    int status = launcher_slurm.start(request, &process, e);

    if (status)
        return status;
    char *text = job_slurm_json(slurm_name(process.slurm), &none);
    status = text ? store_job_set_slurm(m->store, job->id, text, e)
                  : error_set(e, ERR_NO_MEMORY, "no memory to launch job %lld", (long long)job->id);
    free(text);
    if (!status && !job_follow(m, job, request->attempt, &process, e))
        status = -(int)e->code;
    if (status) {
        slurm_forget(process.slurm);
        return status;
    }
    slurm_release(process.slurm);
    return 0;
}

/* A job that is bound would sit on the cores of another that is. One whose hosts' slots are not
 * said has them to itself. */
static bool has_cores_to_itself(const struct job_manager *m, const struct job_spec *spec,
                                int64_t slots)
{
    if (!hosts_are_named(spec))
        return 2 * slots > m->slots && m->slots <= launch_node_slots(false);
    int64_t need = spec->cluster.workers_per_node * job_threads(spec, m->slots);
    return 2 * need > job_hosts_slots(spec, need);
}

static enum job_bind bind_of(const struct job_manager *m, const struct job_spec *spec,
                             int64_t slots)
{
    if (spec->cluster.bind != JOB_BIND_AUTO || spec->cluster.launcher == JOB_LAUNCHER_SLURM)
        return spec->cluster.bind;
    return has_cores_to_itself(m, spec, slots) ? JOB_BIND_AUTO : JOB_BIND_NONE;
}

static int begin(struct job_manager *m, const struct store_job *job, struct launch_request *request,
                 struct error *e)
{
    char reason[128];
    long long world = job_spec_world_size(request->spec);
    const char *verb = job->resumes ? "goes on with" : "starts";
    bool slurm = request->spec->cluster.launcher == JOB_LAUNCHER_SLURM;
    struct store_state_change change = {slurm ? JOB_QUEUED : JOB_STARTING, reason, clock_now(),
                                        NULL};

    if (slurm)
        snprintf(reason, sizeof reason, "is handed to Slurm: %lld workers on %lld nodes", world,
                 (long long)request->spec->cluster.nodes);
    else if (hosts_are_named(request->spec))
        snprintf(reason, sizeof reason, "%s %lld workers on %lld of %zu hosts", verb, world,
                 (long long)request->spec->cluster.nodes, request->spec->cluster.host_count);
    else
        snprintf(reason, sizeof reason, "%s %lld workers on %lld of %lld slots", verb, world,
                 (long long)job->slots, (long long)m->slots);
    int64_t above = run_dir_last_attempt(job->run_dir);
    return store_job_begin_attempt(m->store, job->id, &change, above, &request->attempt, e);
}

/* Three steps, as long as they are thought to be; before the first one by the plan. */
static double lead_seconds(const struct job_limits *limits, const struct store_job *job)
{
    struct store_job guess = *job;

    if (isnan(guess.images_per_sec) && guess.predicted_seconds > 0 && guess.train_steps > 0)
        guess.images_per_sec =
            (double)guess.global_batch * (double)guess.train_steps / guess.predicted_high_seconds;
    double lead = stop_grace(limits, &guess);
    return isnan(job->time_limit_seconds) ? lead : fmin(lead, job->time_limit_seconds / 2);
}

static struct launch_request request_for(struct job_manager *m, const struct job_limits *limits,
                                         const struct store_job *job, const struct job_spec *spec)
{
    struct placement_machine machine = {0};

    if (!hosts_are_named(spec)) /* else they are asked when it starts */
        placement_read("/sys", false, &machine);
    return (struct launch_request){
        .job_id = job->id,
        .run_dir = job->run_dir,
        .spec = spec,
        .threads = job_threads(spec, m->slots),
        .bind = bind_of(m, spec, job->slots),
        .machine = machine,
        .agent = m->agent,
        .data_roots = open_beneath_roots(),
        .stall_seconds = limits->stall_seconds,
        .resumes = job->resumes,
        .slurm = &m->slurm_settings,
        .cluster = m->slurm,
        .created_at = job->created_at,
        .time_limit_seconds = job->time_limit_seconds,
        .lead_seconds = lead_seconds(limits, job),
    };
}

/* A job for Slurm has its threads since it was submitted (job_share_cores); one that an earlier
 * version took may have none. */
static int check_threads(const struct job_manager *m, struct job_spec *spec, struct error *e)
{
    struct problems problems = {0};
    struct slurm_cores cores;
    int status = 0;

    if (job_share_cores(m, spec, &cores, &problems))
        status = error_set(e, ERR_INVALID, "%s: %s", problems.items[0].pointer,
                           problems.items[0].message);
    problems_clear(&problems);
    return status;
}

/* What the plan says of the threads where it shared out cores; the caller frees it. */
static char *threads_source(const json_t *plan)
{
    const json_t *threads = json_object_get(json_object_get(plan, "explain"), "threads_per_worker");
    const char *source = json_string_value(json_object_get(threads, "source"));
    const json_t *inputs = json_object_get(threads, "inputs");
    bool shared =
        json_object_get(inputs, "node_cores") || json_object_get(inputs, "node_hardware_threads");

    return shared && source ? strdup(source) : NULL;
}

/* The checkpoints of attempts that the database does not know are not those of a run that begins
 * anew. */
static int put_checkpoints_aside(struct job_manager *m, const struct store_job *job, int64_t last,
                                 struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX], message[PATH_MAX + 200];
    struct error why;

    if (job->resumes || job_newest_checkpoint(job->run_dir) == 0)
        return 0;
    if ((size_t)snprintf(from, sizeof from, "%s/checkpoints", job->run_dir) >= sizeof from ||
        (size_t)snprintf(to, sizeof to, "%s/checkpoints-to-attempt-%lld", job->run_dir,
                         (long long)last) >= sizeof to)
        return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
    if (rename(from, to))
        return error_set_errno(e, errno, "cannot rename %s to %s", from, to);
    snprintf(message, sizeof message,
             "the run directory held checkpoints of attempts that the database does not know (was "
             "it restored from a backup?): they are in %s now",
             to);
    log_warning("job %lld: %s", (long long)job->id, message);
    json_t *fields = json_pack("{s:s}", "message", message);
    if (store_event_add(m->store, job->id, job->attempt, "warning", fields, clock_now(), &why))
        log_warning("job %lld: a warning was not stored: %s", (long long)job->id, why.text);
    json_decref(fields);
    return 0;
}

/* A database that was restored from a backup may be behind what the run directory shows: what runs
 * there still must not be joined by another. */
static int settle_unknown_attempts(struct job_manager *m, const struct store_job *job,
                                   struct error *e)
{
    int64_t last = run_dir_last_attempt(job->run_dir);

    for (int64_t attempt = job->attempt + 1; attempt <= last; attempt++) {
        struct launch_process unknown = {.pidfd = -1, .gate = -1};
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s/attempt-%lld", job->run_dir, (long long)attempt);
        int processes = launcher_local.survivors(&unknown, folder);
        long long pid = processes ? (long long)unknown.members.items[0].pid : 0;
        launch_process_close(&unknown);
        if (processes)
            return error_set(e, ERR_CONFLICT,
                             "attempt %lld of job %lld, which the database does not know (was it "
                             "restored from a backup?), still runs as process %lld: end it, and "
                             "resume the job",
                             (long long)attempt, (long long)job->id, pid);
    }
    return put_checkpoints_aside(m, job, last, e);
}

void job_start(struct job_manager *m, const struct store_job *job)
{
    struct error e = {0};
    char *mpirun = NULL, *worker = NULL;
    struct job_spec *spec = job_stored_spec(job, &e);
    int status = spec ? check_threads(m, spec, &e) : -(int)e.code;
    json_t *plan = json_loads(job->plan ? job->plan : "{}", 0, NULL);
    char *source = threads_source(plan);

    json_decref(plan);
    if (!status)
        status = find_programs(m, &mpirun, &worker, &e);
    if (!status)
        status = job_prepare_run_dir(m, job, &e);
    if (!status)
        status = settle_unknown_attempts(m, job, &e);
    if (status) {
        fail(m, job, 0, &e);
    } else {
        bool slurm = spec->cluster.launcher == JOB_LAUNCHER_SLURM;
        struct launch_request request = request_for(m, &m->limits, job, spec);
        request.mpirun = mpirun;
        request.worker = worker;
        request.threads_source = source;
        if (begin(m, job, &request, &e)) {
            /* A conflict: the job was cancelled in this moment. */
            log_info("job %lld was not started: %s", (long long)job->id, e.text);
            if (e.code != ERR_CONFLICT)
                m->queue_next_at = fmin(m->queue_next_at, clock_monotonic() + STORE_AGAIN_SECONDS);
        } else if (slurm ? launch_in_slurm(m, job, &request, &e) : launch(m, job, &request, &e)) {
            fail(m, job, request.attempt, &e);
        }
    }
    job_spec_destroy(spec);
    free(mpirun);
    free(worker);
    free(source);
}

int job_slurm_script(struct job_manager *m, const struct job_spec *spec, const struct plan *plan,
                     char **text, struct error *e)
{
    struct store_job_size size = job_size(m, spec, plan);
    struct store_job job = {.train_steps = size.train_steps,
                            .global_batch = size.global_batch,
                            .images_per_sec = NAN,
                            .time_limit_seconds = size.time_limit_seconds,
                            .predicted_seconds = size.predicted_seconds,
                            .predicted_high_seconds = size.predicted_high_seconds};
    struct job_limits limits = manager_limits(m);
    struct launch_request request = request_for(m, &limits, &job, spec);
    char *mpirun = NULL, *worker = NULL;
    int status = find_programs(m, &mpirun, &worker, e);

    *text = NULL;
    char *document = job_json_text(job_spec_to_json(spec));
    json_t *explained = plan_to_json(plan);
    char *source = threads_source(explained);
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
