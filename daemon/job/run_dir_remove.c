/*
 * Removing runs: on request, and those beyond keep_runs. A run directory is renamed first, then the
 * job's row goes: now nobody finds the job any more. What is left of it, its events, its series and
 * the renamed folder, goes in the loop, a little in each round, as the table removal says. A daemon
 * that is killed in between either gives the folder its name back (the row is there still) or goes
 * on.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/system/file.h"
#include "daemon/job/run_dir_remove.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/audit.h"
#include "daemon/store/job_removal.h"
#include "daemon/store/job_row.h"

#define REMOVED         ".removed-" /* and the job's id: in the folder of jobs */
#define SECONDS_A_DAY   86400.0
#define LINES_AT_A_TIME 1000 /* of the audit log */
#define RUNS_AT_A_TIME  32   /* that keep_runs looks for */
#define TURN_SECONDS    0.01 /* of a round of the loop: others write too */
#define AGAIN_SECONDS   10.0 /* after an error of the store, as a full disk */

static int remove_paths(const struct job_manager *m, int64_t id, char *run, char *removed,
                        struct error *e)
{
    if ((size_t)snprintf(run, PATH_MAX, "%s/%lld", m->jobs_dir, (long long)id) < PATH_MAX &&
        (size_t)snprintf(removed, PATH_MAX, "%s/" REMOVED "%lld", m->jobs_dir, (long long)id) <
            PATH_MAX)
        return 0;
    return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
}

static int remove_put_aside(const char *run, const char *removed, struct error *e)
{
    if (rename(run, removed) == 0 || errno == ENOENT)
        return 0;
    return error_set_errno(e, errno, "cannot remove %s", run);
}

/* *run_dir: the job's own directory, or none; what is foreign stays. */
static int remove_check_ended(struct job_manager *m, int64_t id, enum run_dir *run_dir,
                              struct error *e)
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
    int status = remove_paths(m, id, run, removed, e);

    if (!status)
        status = remove_check_ended(m, id, &run_dir, e);
    if (status)
        return status;
    bool own = run_dir == RUN_DIR_OWN;
    pthread_mutex_lock(&m->files);
    if (own)
        status = remove_put_aside(run, removed, e);
    if (!status && (status = store_job_delete(m->store, id, e)) && own && rename(removed, run))
        log_warning("%s could not be given its name back", removed);
    pthread_mutex_unlock(&m->files);
    if (status)
        return status;
    log_info("job %lld: removed by %s", (long long)id, job_by_words(by));
    struct store_audit line = {STORE_AUDIT_JOB_REMOVE, id, by, NULL, clock_now()};
    store_audit_add(m->store, &line);
    m->removing = true;
    job_manager_wake(m);
    return 0;
}

static bool remove_is_its_directory(struct job_manager *m, const struct store_job *job,
                                    char *folder)
{
    struct store_job there = {.id = job->id, .created_at = job->created_at, .run_dir = folder};
    struct error why;

    return run_dir_look(m->store, &there, &why) == RUN_DIR_OWN;
}

static void remove_finish_removal(struct job_manager *m, int64_t id)
{
    char run[PATH_MAX], removed[PATH_MAX];
    struct store_job job;
    struct error e;

    if (remove_paths(m, id, run, removed, &e))
        return;
    int status = store_job_get(m->store, id, &job, &e);
    if (status == 0 && remove_is_its_directory(m, &job, removed) && rename(removed, run) == 0)
        log_info("job %lld: its removal was interrupted, the job has been restored", (long long)id);
    else if (status != -(int)ERR_NOT_FOUND || store_removal_set(m->store, id, true, &e))
        log_warning("%s is left over from a removal, and could not be cleared up", removed);
    if (status == 0)
        store_job_clear(&job);
}

void job_finish_removals(struct job_manager *m)
{
    DIR *folder = opendir(m->jobs_dir);
    const struct dirent *entry;
    long long id;
    int used;

    while (folder && (entry = readdir(folder))) {
        used = 0;
        if (sscanf(entry->d_name, REMOVED "%lld%n", &id, &used) == 1 && !entry->d_name[used] &&
            id > 0)
            remove_finish_removal(m, id);
    }
    if (folder)
        closedir(folder);
    m->removing = true; /* as far as the table says */
}

/* ---------------------------------------------------------------- in the loop */

/* A part of what is left of a removed job. 1: there may be more; 0: nothing is left of any. */
static int remove_rest(struct job_manager *m, struct error *e)
{
    double until = clock_monotonic() + TURN_SECONDS;
    char run[PATH_MAX], removed[PATH_MAX];
    bool rows_left;
    int64_t id;
    int status = store_removal_go_on(m->store, TURN_SECONDS, &id, &rows_left, e);

    if (status || id == 0)
        return status;
    if (!rows_left && !(status = remove_paths(m, id, run, removed, e)))
        status = file_remove_tree_until(removed, until, e);
    if (rows_left || status > 0)
        return 1;
    if (status) /* the next start tries again */
        log_warning("job %lld: %s", (long long)id, e->text);
    else
        log_info("job %lld: its removal is completed", (long long)id);
    status = store_removal_set(m->store, id, false, e);
    return status ? status : 1;
}

/* Some of the runs beyond keep_runs; m->beyond: there may be more. */
static int remove_beyond(struct job_manager *m, struct error *e)
{
    double until = clock_monotonic() + TURN_SECONDS;
    int64_t ids[RUNS_AT_A_TIME], keep = m->limits.keep_runs;
    size_t count = 0, i;
    bool failed = false;

    if (keep > 0 && store_jobs_beyond(m->store, keep, ids, RUNS_AT_A_TIME, &count, e))
        return error_prefix(e, "old runs are not looked for");
    for (i = 0; i < count && (i == 0 || clock_monotonic() < until); i++)
        if (job_remove(m, ids[i], "keep_runs", e) && e->code != ERR_CONFLICT) {
            log_warning("job %lld could not be removed: %s", (long long)ids[i], e->text);
            failed = true; /* the end of the next job tries again */
        }
    m->beyond = !failed && (i < count || count == RUNS_AT_A_TIME);
    return 1;
}

void job_go_on_removing(struct job_manager *m)
{
    double begin = clock_monotonic();
    struct error e;

    if (!m->removing || begin < m->remove_next_at)
        return;
    m->removing = false; /* before the look: another thread may remove a job meanwhile */
    int left = m->beyond ? remove_beyond(m, &e) : remove_rest(m, &e);
    double end = clock_monotonic();
    if (left < 0)
        log_warning("removing is tried again in %.0f s: %s", AGAIN_SECONDS, e.text);
    if (left)
        m->removing = true;
    m->remove_next_at = end + (left < 0 ? AGAIN_SECONDS : end - begin);
}

/* ---------------------------------------------------------------- limits */

static void remove_keep_audit_days(struct job_manager *m)
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
    remove_keep_audit_days(m);
    m->beyond = m->limits.keep_runs > 0;
    if (m->beyond)
        m->removing = true;
}
