#include "daemon/job/job_start.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/job/job_document.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "common/system/open_beneath.h"
#include "common/text.h"
#include "daemon/job/document.h"
#include "daemon/job/job_grace.h"
#include "daemon/job/job_resources.h"
#include "daemon/job/resume_point.h"
#include "daemon/job/run_dir.h"
#include "daemon/launch/slurm_script.h"
#include "daemon/store/attempt.h"
#include "daemon/store/event.h"
#include "daemon/store/job_change.h"
#include "launch/hosts.h"

/* ---------------------------------------------------------------- what it takes */

static int start_find_programs(const struct job_manager *m, char **mpirun, char **worker,
                               struct error *e)
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

/* A job that is bound would sit on the cores of another that is. One whose hosts' slots are not
 * said has them to itself. */
static bool start_has_cores_to_itself(const struct job_manager *m, const struct job_spec *spec,
                                      int64_t slots)
{
    if (!job_spec_names_hosts(spec))
        return 2 * slots > m->slots && m->slots <= launch_node_slots(false);
    int64_t need = spec->cluster.workers_per_node * job_threads(spec, m->slots);
    return 2 * need > job_hosts_slots(spec, need);
}

static enum job_bind start_bind_of(const struct job_manager *m, const struct job_spec *spec,
                                   int64_t slots)
{
    if (spec->cluster.bind != JOB_BIND_AUTO || spec->cluster.launcher == JOB_LAUNCHER_SLURM)
        return spec->cluster.bind;
    return start_has_cores_to_itself(m, spec, slots) ? JOB_BIND_AUTO : JOB_BIND_NONE;
}

/* Three steps, as long as they are thought to be; before the first one by the plan. */
static double start_lead_seconds(const struct job_limits *limits, const struct store_job *job)
{
    struct store_job guess = *job;

    if (isnan(guess.images_per_sec) && guess.predicted_seconds > 0 && guess.train_steps > 0)
        guess.images_per_sec =
            (double)guess.global_batch * (double)guess.train_steps / guess.predicted_high_seconds;
    double lead = grace_of(limits, &guess);
    return isnan(job->time_limit_seconds) ? lead : fmin(lead, job->time_limit_seconds / 2);
}

static struct launch_request start_request_for(struct job_manager *m,
                                               const struct job_limits *limits,
                                               const struct store_job *job,
                                               const struct job_spec *spec)
{
    struct placement_machine machine = {0};

    if (!job_spec_names_hosts(spec)) /* else they are asked when it starts */
        placement_read_mine(&machine);
    return (struct launch_request){
        .job_id = job->id,
        .run_dir = job->run_dir,
        .spec = spec,
        .threads = job_threads(spec, m->slots),
        .bind = start_bind_of(m, spec, job->slots),
        .machine = machine,
        .agent = m->agent,
        .data_roots = open_beneath_roots(),
        .stall_seconds = limits->stall_seconds,
        .resumes = job->resumes,
        .slurm = &m->slurm_settings,
        .cluster = m->slurm,
        .created_at = job->created_at,
        .time_limit_seconds = job->time_limit_seconds,
        .lead_seconds = start_lead_seconds(limits, job),
    };
}

/* A job for Slurm has its threads since it was submitted (job_share_cores); one that an earlier
 * version took may have none. */
static int start_check_threads(const struct job_manager *m, struct job_spec *spec, const char *by,
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

/* What the plan says of the threads where it shared out cores; the caller frees it. */
static char *start_threads_source(const json_t *plan)
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
static int start_put_checkpoints_aside(struct job_manager *m, const struct store_job *job,
                                       int64_t last, struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX], message[PATH_MAX + 200];
    struct error why;

    int64_t newest = job->resumes ? 0 : resume_point_newest_step(job->run_dir, e);
    if (newest <= 0)
        return (int)newest;
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
static int start_settle_unknown_attempts(struct job_manager *m, const struct store_job *job,
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
            return error_set(
                e, ERR_CONFLICT,
                "attempt %lld of job %lld, which the database does not know (was it restored from "
                "a backup?), is still running as process %lld: end it, then resume the job",
                (long long)attempt, (long long)job->id, pid);
    }
    return start_put_checkpoints_aside(m, job, last, e);
}

/* ---------------------------------------------------------------- the steps */

struct start {
    struct store_job job;
    char *mpirun, *worker, *threads_source;
    struct launch_request request;
};

struct start *start_create(struct store_job *job)
{
    struct start *s = calloc(1, sizeof *s);

    if (s) {
        s->job = *job;
        *job = (struct store_job){0};
    }
    return s;
}

void start_clear(struct start *s)
{
    if (!s)
        return;
    store_job_clear(&s->job);
    free(s->mpirun);
    free(s->worker);
    free(s->threads_source);
    free(s);
}

int start_prepare(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct start *s = a->start;

    if (!a->spec && !(a->spec = store_job_take_document(&s->job, e)))
        return -(int)e->code;
    int status = start_check_threads(m, a->spec, s->job.submitted_by, e);
    s->threads_source = start_threads_source(store_job_plan(&s->job));
    if (!status)
        status = start_find_programs(m, &s->mpirun, &s->worker, e);
    if (!status) {
        pthread_mutex_lock(&m->files);
        status = run_dir_prepare(m->store, &s->job, e);
        pthread_mutex_unlock(&m->files);
    }
    if (!status)
        status = start_settle_unknown_attempts(m, &s->job, e);
    if (status)
        return status;
    s->request = start_request_for(m, &m->limits, &s->job, a->spec);
    s->request.mpirun = s->mpirun;
    s->request.worker = s->worker;
    s->request.threads_source = s->threads_source;
    return 0;
}

static void start_words(const struct job_manager *m, const struct active_job *a, char *reason,
                        size_t bytes)
{
    const struct job_spec *spec = a->spec;
    long long world = job_spec_world_size(spec);
    const char *verb = a->start->job.resumes ? "continues with" : "starts";

    if (a->machine.slurm)
        snprintf(reason, bytes, "is handed to Slurm: %lld worker%s on %lld node%s", world,
                 plural(world), (long long)spec->cluster.nodes, plural(spec->cluster.nodes));
    else if (job_spec_names_hosts(spec))
        snprintf(reason, bytes, "%s %lld worker%s on %lld of %zu host%s", verb, world,
                 plural(world), (long long)spec->cluster.nodes, spec->cluster.host_count,
                 plural((long long)spec->cluster.host_count));
    else
        snprintf(reason, bytes, "%s %lld worker%s on %lld of %lld slot%s", verb, world,
                 plural(world), (long long)a->slots, (long long)m->slots, plural(m->slots));
}

int start_store_attempt(struct job_manager *m, struct active_job *a, struct error *e)
{
    char reason[128];
    struct store_state_change change = {a->machine.slurm ? JOB_QUEUED : JOB_STARTING, reason,
                                        clock_now(), NULL};
    int64_t above = run_dir_last_attempt(a->run_dir);

    start_words(m, a, reason, sizeof reason);
    int status = store_job_begin_attempt(m->store, a->id, &change, above, &a->attempt, e);
    a->start->request.attempt = a->attempt;
    if (status)
        log_info("job %lld was not started: %s", (long long)a->id, e->text);
    return status;
}

int start_launcher(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    return a->launcher->start(&a->start->request, &a->process, e);
}

int start_store_launcher(struct job_manager *m, struct active_job *a, struct error *e)
{
    struct slurm_status none = {0};

    if (!a->process.slurm)
        return store_job_set_launcher(m->store, a->id, a->process.pid, a->process.start, e);
    char *text = must_alloc(start_slurm_json(slurm_name(a->process.slurm), &none));
    int status = store_job_hand_to_slurm(m->store, a->id, a->attempt, text, e);
    free(text);
    return status;
}

int start_open_gate(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    (void)e;
    if (a->process.slurm) {
        slurm_release(a->process.slurm);
    } else {
        launch_release(&a->process);
        log_info("job %lld: attempt %lld started, process %d", (long long)a->id,
                 (long long)a->attempt, (int)a->process.pid);
    }
    start_clear(a->start);
    a->start = NULL;
    return 0;
}

int start_abandon(struct job_manager *m, struct active_job *a, struct error *e)
{
    (void)m;
    (void)e;
    log_warning("job %lld was not started: %s", (long long)a->id, a->no_start.text);
    if (!a->process.slurm)
        launch_abandon(&a->process);
    slurm_forget(a->process.slurm);
    a->process = (struct launch_process){.pidfd = -1, .gate = -1};
    return 0;
}

/* ---------------------------------------------------------------- what Slurm knows of it */

char *start_slurm_json(const char *name, const struct slurm_status *status)
{
    json_t *id = status->job_id ? json_integer(status->job_id) : json_null();
    json_t *json = json_pack("{s:o, s:s, s:s*, s:s*, s:s*}", "job_id", id, "name", name, "state",
                             *status->state ? status->state : "SUBMITTING", "reason",
                             *status->reason ? status->reason : "None", "nodes", status->nodes);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
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
    struct job_limits limits = job_manager_limits(m);
    struct launch_request request = start_request_for(m, &limits, &job, spec);
    char *mpirun = NULL, *worker = NULL;
    int status = start_find_programs(m, &mpirun, &worker, e);

    *text = NULL;
    char *document = job_json_text(job_spec_to_json(spec));
    json_t *explained = plan_to_json(plan);
    char *source = start_threads_source(explained);
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
