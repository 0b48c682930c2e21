#include "daemon/job/job_active.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "common/job/job_document.h"
#include "common/log.h"
#include "common/system/file.h"
#include "daemon/job/job_start.h"
#include "daemon/job/job_resources.h"

/* A job that runs is followed even if its document cannot be read any more. */
static void active_read_document(struct job_manager *m, struct active_job *a,
                                 const struct store_job *job)
{
    struct error e;

    a->spec = store_job_take_document(job, &e);
    if (!a->spec)
        log_warning("job %lld: its hosts are not known: %s", (long long)a->id, e.text);
    else if (!job_hosts_of(a->spec,
                           a->spec->cluster.workers_per_node * job_threads(a->spec, m->slots),
                           &a->hosts))
        log_warning("job %lld: its hosts are not known: no memory", (long long)a->id);
}

struct active_job *active_create(struct job_manager *m, const struct store_job *job,
                                 enum job_phase phase, struct error *e)
{
    bool slurm = job->slurm || (job->launcher && strcmp(job->launcher, "slurm") == 0);
    struct active_job *a = calloc(1, sizeof *a);
    char *run_dir = strdup(job->run_dir), *attempt_dir = NULL;

    if (!a || !run_dir ||
        asprintf(&attempt_dir, "%s/attempt-%lld", run_dir, (long long)job->attempt) < 0) {
        free(a);
        free(run_dir);
        error_set(e, ERR_NO_MEMORY, "no memory to follow job %lld", (long long)job->id);
        return NULL;
    }
    *a = (struct active_job){
        .id = job->id,
        .attempt = job->attempt,
        .slots = job->slots,
        .run_dir = run_dir,
        .attempt_dir = attempt_dir,
        .launcher = slurm ? &launcher_slurm : &launcher_local,
        .process = {.pidfd = -1,     .gate = -1       },
        .watch = -1,
        .exit_code = -1,
        .exit_signal = -1,
        .slurm = {.exit_code = -1, .exit_signal = -1},
    };
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
    active_read_document(m, a, job);
    return a;
}

void active_add(struct job_manager *m, struct active_job *a)
{
    struct active_job **last = &m->active;

    while (*last)
        last = &(*last)->next;
    *last = a;
}

int active_open(struct job_manager *m, const struct active_job *a, int64_t attempt,
                struct active_attempt *opened, struct error *e)
{
    *opened = (struct active_attempt){.attempt = attempt};
    if (asprintf(&opened->folder, "%s/attempt-%lld", a->run_dir, (long long)attempt) < 0) {
        opened->folder = NULL;
        return error_set(e, ERR_NO_MEMORY, "no memory to follow job %lld", (long long)a->id);
    }
    int status = file_make_dirs(opened->folder, e);
    if (!status)
        status = ingest_create(m->store, a->id, attempt, opened->folder, &opened->ingest, e);
    if (status)
        active_close(opened);
    return status;
}

void active_switch(struct job_manager *m, struct active_job *a, struct active_attempt *opened)
{
    if (a->watch >= 0)
        inotify_rm_watch(m->inotify_fd, a->watch);
    ingest_destroy(a->ingest);
    free(a->attempt_dir);
    a->ingest = opened->ingest;
    a->attempt_dir = opened->folder;
    a->attempt = opened->attempt;
    a->watch = m->inotify_fd < 0 ? -1
                                 : inotify_add_watch(m->inotify_fd, a->attempt_dir,
                                                     IN_MODIFY | IN_CREATE | IN_MOVED_TO);
}

void active_close(struct active_attempt *opened)
{
    ingest_destroy(opened->ingest);
    free(opened->folder);
    *opened = (struct active_attempt){0};
}

void active_destroy(struct job_manager *m, struct active_job *a)
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
    job_spec_destroy(a->spec);
    job_hosts_clear(&a->hosts);
    start_clear(a->start);
    free(a->slurm_stored);
    free(a->run_dir);
    free(a->attempt_dir);
    free(a);
}

struct active_job *active_find(const struct job_manager *m, int64_t id)
{
    struct active_job *a = m->active;

    while (a && a->id != id)
        a = a->next;
    return a;
}

bool active_is_under_way(const struct active_job *a)
{
    return a->machine.phase == PHASE_RUNNING || a->machine.phase == PHASE_IN_SLURM;
}

int64_t active_slots(const struct job_manager *m)
{
    int64_t used = 0;

    for (const struct active_job *a = m->active; a; a = a->next)
        used += a->slots;
    return used;
}
