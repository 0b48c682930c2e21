#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/preset.h"
#include "daemon/job/manager.h"

static void fail(struct job_manager *m, int64_t id, const char *reason)
{
    struct store_state_change failed = {JOB_FAILED, reason, clock_now()};
    struct error e;

    log_warning("job %lld failed: %s", (long long)id, reason);
    if (store_job_set_state(m->store, id, &failed, &e) && e.code != ERR_CONFLICT)
        log_error("job %lld: its end was not stored: %s", (long long)id, e.text);
}

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

static double limit_at(const struct store_job *job, const struct launch_process *process)
{
    if (isnan(job->time_limit_seconds))
        return INFINITY;
    return clock_monotonic() + job->time_limit_seconds - launch_elapsed_seconds(process);
}

struct active_job *job_follow(struct job_manager *m, const struct store_job *job, int64_t attempt,
                              const struct launch_process *process, struct error *e)
{
    struct active_job *a = calloc(1, sizeof *a);

    if (a)
        *a = (struct active_job){.id = job->id,
                                 .attempt = attempt,
                                 .slots = job->slots,
                                 .launcher = &launcher_local,
                                 .process = *process,
                                 .watch = -1,
                                 .exit_code = -1,
                                 .exit_signal = -1,
                                 .limit_at = limit_at(job, process)};
    if (!a || !(a->run_dir = strdup(job->run_dir)) ||
        asprintf(&a->attempt_dir, "%s/attempt-%lld", job->run_dir, (long long)attempt) < 0) {
        error_set(e, ERR_NO_MEMORY, "no memory to follow job %lld", (long long)job->id);
        goto error;
    }
    if (ingest_create(m->store, a->id, attempt, a->attempt_dir, &a->ingest, e))
        goto error;
    if (m->inotify_fd >= 0)
        a->watch = inotify_add_watch(m->inotify_fd, a->attempt_dir, IN_MODIFY | IN_CREATE);
    /* At the end, so that jobs are named in the order of their start. */
    struct active_job **last = &m->active;
    while (*last)
        last = &(*last)->next;
    *last = a;
    return a;
error:
    if (a) {
        free(a->run_dir);
        free(a->attempt_dir);
        free(a);
    }
    return NULL;
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
    launch_process_close(&a->process);
    ingest_destroy(a->ingest);
    free(a->run_dir);
    free(a->attempt_dir);
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

static int begin(struct job_manager *m, const struct store_job *job, struct launch_request *request,
                 struct error *e)
{
    char reason[128];

    snprintf(reason, sizeof reason, "%s %lld workers on %lld of %lld slots",
             job->resumes ? "goes on with" : "starts",
             (long long)job_spec_world_size(request->spec), (long long)job->slots,
             (long long)m->slots);
    return store_job_begin_attempt(m->store, job->id, reason, clock_now(), &request->attempt, e);
}

void job_start(struct job_manager *m, const struct store_job *job)
{
    struct error e = {0};
    char *mpirun = NULL, *worker = NULL;
    struct job_spec *spec = job_stored_spec(job, &e);
    int status = spec ? 0 : -(int)e.code;

    if (!status)
        status = find_programs(m, &mpirun, &worker, &e);
    if (!status)
        status = job_prepare_run_dir(m, job->run_dir, job->spec, job->plan, &e);
    if (status) {
        fail(m, job->id, e.text);
    } else {
        struct launch_request request = {
            .job_id = job->id,
            .run_dir = job->run_dir,
            .spec = spec,
            .threads = job_threads(spec, m->slots),
            .bind = 2 * job->slots > m->slots && m->slots <= launch_node_cores(),
            .stall_seconds = m->stall_seconds,
            .mpirun = mpirun,
            .worker = worker,
            .resumes = job->resumes,
        };
        /* A conflict: the job was cancelled in this moment. */
        if (begin(m, job, &request, &e))
            log_info("job %lld was not started: %s", (long long)job->id, e.text);
        else if (launch(m, job, &request, &e))
            fail(m, job->id, e.text);
    }
    job_spec_destroy(spec);
    free(mpirun);
    free(worker);
}
