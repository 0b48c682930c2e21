/*
 * Removing runs: on request, and those beyond keep_runs. A run directory is renamed first, then the
 * rows go, then the files: a daemon that is killed in between finds the renamed folder, and either
 * gives it back (the rows are there still) or goes on.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/system/file.h"
#include "daemon/job/dir/remove.h"
#include "daemon/job/dir/run_dir.h"
#include "daemon/store/audit.h"

#define REMOVED         ".removed-" /* and the job's id: in the folder of jobs */
#define SECONDS_A_DAY   86400.0
#define LINES_AT_A_TIME 1000 /* of the audit log */
/* What keep_runs removes in one go: the loop has other work. */
#define RUNS_AT_A_TIME 32
#define RUNS_SECONDS   2

static int remove_paths(const struct job_manager *m, int64_t id, char *run, char *removed,
                        struct error *e)
{
    if ((size_t)snprintf(run, PATH_MAX, "%s/%lld", m->jobs_dir, (long long)id) < PATH_MAX &&
        (size_t)snprintf(removed, PATH_MAX, "%s/" REMOVED "%lld", m->jobs_dir, (long long)id) <
            PATH_MAX)
        return 0;
    return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
}

static int put_aside(const char *run, const char *removed, struct error *e)
{
    if (rename(run, removed) == 0 || errno == ENOENT)
        return 0;
    return error_set_errno(e, errno, "cannot remove %s", run);
}

/* *run_dir: the job's own directory, or none; what is foreign stays. */
static int check_ended(struct job_manager *m, int64_t id, enum run_dir *run_dir, struct error *e)
{
    struct error why;
    struct store_job job;
    int status = store_job_get(m->store, id, &job, e);

    if (status)
        return status;
    if (!job_state_is_final(job.state))
        status = error_set(e, ERR_CONFLICT,
                           "job %lld is %s: cancel it first, and remove it when it has ended",
                           (long long)id, job_state_name(job.state));
    *run_dir = run_dir_look(m->store, &job, &why);
    if (!status && (*run_dir == RUN_DIR_FOREIGN || *run_dir == RUN_DIR_UNKNOWN))
        log_warning("job %lld is removed: %s", (long long)id, why.text);
    store_job_clear(&job);
    return status;
}

int job_remove(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    char run[PATH_MAX], removed[PATH_MAX];
    enum run_dir run_dir;
    struct error ignored;
    int status = remove_paths(m, id, run, removed, e);

    if (!status)
        status = check_ended(m, id, &run_dir, e);
    if (status)
        return status;
    bool own = run_dir == RUN_DIR_OWN;
    pthread_mutex_lock(&m->files);
    if (own)
        status = put_aside(run, removed, e);
    if (!status && (status = store_job_delete(m->store, id, e)) && own && rename(removed, run))
        log_warning("%s could not be given its name back", removed);
    pthread_mutex_unlock(&m->files);
    if (status)
        return status;
    log_info("job %lld: removed by %s", (long long)id, job_by_words(by));
    struct store_audit line = {STORE_AUDIT_JOB_REMOVE, id, by, NULL, clock_now()};
    store_audit_add(m->store, &line);
    if (own && file_remove_tree(removed, &ignored)) /* the next start tries again */
        log_warning("job %lld: %s", (long long)id, ignored.text);
    return 0;
}

static bool is_its_directory(struct job_manager *m, const struct store_job *job, char *folder)
{
    struct store_job there = {.id = job->id, .created_at = job->created_at, .run_dir = folder};
    struct error why;

    return run_dir_look(m->store, &there, &why) == RUN_DIR_OWN;
}

static void finish_removal(struct job_manager *m, int64_t id)
{
    char run[PATH_MAX], removed[PATH_MAX];
    struct store_job job;
    struct error e;

    if (remove_paths(m, id, run, removed, &e))
        return;
    int status = store_job_get(m->store, id, &job, &e);
    if (status == 0 && is_its_directory(m, &job, removed) && rename(removed, run) == 0)
        log_info("job %lld: its removal had not been completed, it is there again", (long long)id);
    else if (status == -(int)ERR_NOT_FOUND && file_remove_tree(removed, &e) == 0)
        log_info("job %lld: its removal is completed", (long long)id);
    else
        log_warning("%s is left over from a removal, and could not be cleared up", removed);
    if (status == 0)
        store_job_clear(&job);
}

static void finish_import(const struct job_manager *m, const char *name)
{
    char path[PATH_MAX];
    struct error e;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", m->jobs_dir, name) < sizeof path &&
        file_remove_tree(path, &e))
        log_warning("an import is left over: %s", e.text);
}

void job_finish_removals(struct job_manager *m)
{
    DIR *folder = opendir(m->jobs_dir);
    const struct dirent *entry;
    long long id;
    int used;

    while (folder && (entry = readdir(folder))) {
        used = 0;
        if (sscanf(entry->d_name, REMOVED "%lld%n", &id, &used) == 1 && !entry->d_name[used])
            finish_removal(m, id);
        else if (strncmp(entry->d_name, RUN_DIR_IMPORT, strlen(RUN_DIR_IMPORT)) == 0)
            finish_import(m, entry->d_name);
    }
    if (folder)
        closedir(folder);
}

/* ---------------------------------------------------------------- limits */

static void keep_audit_days(struct job_manager *m)
{
    struct error e;
    int deleted;

    if (m->limits.keep_audit_days <= 0)
        return;
    double since = clock_now() - (double)m->limits.keep_audit_days * SECONDS_A_DAY;
    if (store_audit_trim(m->store, since, LINES_AT_A_TIME, &deleted, &e))
        log_warning("old lines of the audit log were not deleted: %s", e.text);
    else if (deleted)
        log_info("%d lines of the audit log were deleted (keep_audit_days = %lld)", deleted,
                 (long long)m->limits.keep_audit_days);
}

void job_keep_limits(struct job_manager *m)
{
    int64_t ids[RUNS_AT_A_TIME];
    size_t count;
    struct error e;

    keep_audit_days(m);
    if (m->limits.keep_runs <= 0)
        return;
    if (store_jobs_beyond(m->store, m->limits.keep_runs, ids, RUNS_AT_A_TIME, &count, &e)) {
        log_warning("old runs are not looked for: %s", e.text);
        return;
    }
    double until = clock_monotonic() + RUNS_SECONDS;
    for (size_t i = 0; i < count && clock_monotonic() < until; i++)
        if (job_remove(m, ids[i], "keep_runs", &e) && e.code != ERR_CONFLICT)
            log_warning("job %lld could not be removed: %s", (long long)ids[i], e.text);
}
