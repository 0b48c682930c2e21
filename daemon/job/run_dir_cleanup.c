#include "daemon/job/run_dir_cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/run/checkpoints.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/audit.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_removal.h"
#include "daemon/store/job_row.h"

#define REMOVED         ".removed-" /* followed by the job's id; in the jobs folder */
#define SECONDS_A_DAY   86400.0
#define LINES_AT_A_TIME 1000 /* audit log lines deleted per transaction */
#define RUNS_AT_A_TIME  32   /* runs beyond keep_runs listed at once */
#define TURN_SECONDS    0.01 /* per round of the loop, to let others write */
#define ERROR_SECONDS   10.0 /* pause after a store error such as a full disk */
#define RETRY_SECONDS   5.0
#define RETRIES_MAX     1000 /* taken over from an earlier daemon */
#define MEASURE_SECONDS 0.01

/* ---------------------------------------------------------------- removing a job */

static int cleanup_paths(const struct job_manager *m, int64_t id, char run[PATH_MAX],
                         char removed[PATH_MAX], struct error *e)
{
    int status = file_path(run, e, "%s/%lld", m->jobs_dir, (long long)id);

    return status ? status
                  : file_path(removed, e, "%s/" REMOVED "%lld", m->jobs_dir, (long long)id);
}

/* Sets *own to whether the run directory is the job's; a foreign one is kept. */
static int cleanup_check_ended(struct job_manager *m, int64_t id, bool *own, struct error *e)
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
    enum run_dir run_dir = run_dir_look(m->store, &job, &why);
    if (!status && (run_dir == RUN_DIR_FOREIGN || run_dir == RUN_DIR_UNKNOWN))
        log_warning("removing job %lld: %s", (long long)id, why.text);
    *own = run_dir == RUN_DIR_OWN;
    store_job_clear(&job);
    return status;
}

int job_remove(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    char run[PATH_MAX], removed[PATH_MAX];
    bool own;
    int status = cleanup_paths(m, id, run, removed, e);

    assert_object(m, JOB_MANAGER_MAGIC);
    if (!status)
        status = cleanup_check_ended(m, id, &own, e);
    if (status)
        return status;
    pthread_mutex_lock(&m->files);
    if (own && rename(run, removed) && errno != ENOENT)
        status = error_set_errno(e, errno, "cannot remove %s", run);
    if (!status && (status = store_job_delete(m->store, id, e)) && own && rename(removed, run))
        log_warning("cannot rename %s back", removed);
    pthread_mutex_unlock(&m->files);
    if (status)
        return status;
    log_info("job %lld: removed by %s", (long long)id, job_requester_name(by));
    struct store_audit line = {STORE_AUDIT_JOB_REMOVE, id, by, NULL, clock_now()};
    store_audit_add(m->store, &line);
    m->removing = true;
    job_manager_wake(m);
    return 0;
}

static void cleanup_finish_removal(struct job_manager *m, int64_t id)
{
    char run[PATH_MAX], removed[PATH_MAX];
    struct store_job job = {0};
    struct error e;

    if (cleanup_paths(m, id, run, removed, &e))
        return;
    int status = store_job_get(m->store, id, &job, &e);
    struct store_job there = {.id = id, .created_at = job.created_at, .run_dir = removed};
    if (status == 0 && run_dir_look(m->store, &there, &e) == RUN_DIR_OWN &&
        rename(removed, run) == 0)
        log_info("job %lld: its removal was interrupted, the job has been restored", (long long)id);
    else if (status != -(int)ERR_NOT_FOUND || store_removal_set(m->store, id, true, &e))
        log_warning("cannot remove %s, which is left over from a removal", removed);
    if (status == 0)
        store_job_clear(&job);
}

void cleanup_finish_removals(struct job_manager *m)
{
    DIR *folder = opendir(m->jobs_dir);
    const struct dirent *entry;
    long long id;
    int used;

    while (folder && (entry = readdir(folder))) {
        used = 0;
        if (sscanf(entry->d_name, REMOVED "%lld%n", &id, &used) == 1 && !entry->d_name[used] &&
            id > 0)
            cleanup_finish_removal(m, id);
    }
    if (folder)
        closedir(folder);
    m->removing = true; /* until the table shows that nothing is left */
}

/* Deletes part of the data of removed jobs. Returns 1 if there may be more, 0 if nothing is
 * left. */
static int cleanup_rest(struct job_manager *m, struct error *e)
{
    double until = clock_monotonic() + TURN_SECONDS;
    char run[PATH_MAX], removed[PATH_MAX];
    bool rows_left;
    int64_t id;
    int status = store_removal_go_on(m->store, TURN_SECONDS, &id, &rows_left, e);

    if (status || id == 0)
        return status;
    if (!rows_left && !(status = cleanup_paths(m, id, run, removed, e)))
        status = file_remove_tree_until(removed, until, e);
    if (rows_left || status > 0)
        return 1;
    if (status) /* retried at the next startup */
        log_warning("job %lld: %s", (long long)id, e->text);
    else
        log_info("job %lld: removal completed", (long long)id);
    status = store_removal_set(m->store, id, false, e);
    return status ? status : 1;
}

/* Removes some of the runs beyond keep_runs. Sets m->beyond if there may be more. */
static int cleanup_beyond(struct job_manager *m, struct error *e)
{
    double until = clock_monotonic() + TURN_SECONDS;
    int64_t ids[RUNS_AT_A_TIME], keep = m->limits.keep_runs;
    size_t count = 0, i;
    bool failed = false;

    if (keep > 0 && store_jobs_beyond(m->store, keep, ids, RUNS_AT_A_TIME, &count, e))
        return error_prefix(e, "cannot list the runs beyond keep_runs");
    for (i = 0; i < count && (i == 0 || clock_monotonic() < until); i++)
        if (job_remove(m, ids[i], "keep_runs", e) && e->code != ERR_CONFLICT) {
            log_warning("cannot remove job %lld: %s", (long long)ids[i], e->text);
            failed = true; /* retried when the next job ends */
        }
    m->beyond = !failed && (i < count || count == RUNS_AT_A_TIME);
    return 1;
}

double cleanup_remove_some(struct job_manager *m)
{
    double begin = clock_monotonic();
    struct error e;

    m->removing = false; /* cleared first: another thread may remove a job meanwhile */
    int left = m->beyond ? cleanup_beyond(m, &e) : cleanup_rest(m, &e);
    double end = clock_monotonic();
    if (left < 0)
        log_warning("removal will be retried in %.0f s: %s", ERROR_SECONDS, e.text);
    if (left)
        m->removing = true;
    /* Pause for as long as the removal took. */
    m->remove_not_before = end + (left < 0 ? ERROR_SECONDS : end - begin);
    return left ? m->remove_not_before : INFINITY;
}

void cleanup_keep_limits(struct job_manager *m)
{
    double since = clock_now() - (double)m->limits.keep_audit_days * SECONDS_A_DAY;
    int deleted = 0;
    struct error e;

    if (m->limits.keep_audit_days > 0 &&
        store_audit_trim(m->store, since, LINES_AT_A_TIME, &deleted, &e))
        log_warning("cannot delete old lines of the audit log: %s", e.text);
    else if (deleted)
        log_info("%d lines of the audit log were deleted (keep_audit_days = %lld)", deleted,
                 (long long)m->limits.keep_audit_days);
    m->beyond = m->limits.keep_runs > 0;
    if (m->beyond)
        m->removing = true;
}

/* ---------------------------------------------------------------- unfinished checkpoints */

/* An ended run whose unfinished checkpoint cannot be removed yet, because its folder is
 * read-only. */
struct cleanup_later {
    struct cleanup_later *next;
    int64_t id;
    char *run_dir;
};

static int cleanup_unfinished(const char *run_dir, struct error *e)
{
    char folder[PATH_MAX];
    int status = file_path(folder, e, "%s/checkpoints", run_dir);

    return status ? status : checkpoint_remove_unfinished(folder, e);
}

static void cleanup_store_left(struct job_manager *m, int64_t id, bool left)
{
    struct error e;

    if (store_leftover_set(m->store, id, left, &e))
        log_warning("job %lld: cannot store that its run %s an unfinished checkpoint: %s",
                    (long long)id, left ? "left" : "no longer has", e.text);
}

static void cleanup_put_off(struct job_manager *m, int64_t id, const char *run_dir, double seconds)
{
    struct cleanup_later *later = xcalloc(1, sizeof *later);

    *later = (struct cleanup_later){m->cleanup_later, id, xstrdup(run_dir)};
    m->cleanup_later = later;
    job_manager_want(m, TASK_RETRY, clock_monotonic() + seconds);
}

/* If it runs again, its next checkpoint removes what is left of earlier ones. */
static bool cleanup_runs_again(const struct job_manager *m, const char *run_dir)
{
    for (const struct active_job *a = m->active; a; a = a->next)
        if (strcmp(a->run_dir, run_dir) == 0)
            return true;
    return false;
}

double cleanup_retry(struct job_manager *m)
{
    struct error e;

    pthread_mutex_lock(&m->files);
    for (struct cleanup_later **at = &m->cleanup_later, *later; (later = *at);) {
        bool runs = cleanup_runs_again(m, later->run_dir);
        if (!runs && cleanup_unfinished(later->run_dir, &e)) {
            at = &later->next;
            continue;
        }
        if (!runs)
            log_info("job %lld: removed its unfinished checkpoint", (long long)later->id);
        cleanup_store_left(m, later->id, false);
        *at = later->next;
        free(later->run_dir);
        free(later);
    }
    pthread_mutex_unlock(&m->files);
    return m->cleanup_later ? clock_monotonic() + RETRY_SECONDS : INFINITY;
}

static void cleanup_take_over(struct job_manager *m, int64_t id)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, id, &job, &e)) {
        log_warning("job %lld: %s", (long long)id, e.text);
        return;
    }
    if (run_dir_look(m->store, &job, &e) == RUN_DIR_OWN) {
        log_warning("job %lld: an unfinished checkpoint in %s could not be removed before traind "
                    "was started; retrying until it can be removed",
                    (long long)id, job.run_dir);
        cleanup_put_off(m, id, job.run_dir, 0);
    } else {
        cleanup_store_left(m, id, false);
    }
    store_job_clear(&job);
}

void cleanup_start(struct job_manager *m)
{
    int64_t ids[RETRIES_MAX];
    size_t count;
    struct error e;

    assert_object(m, JOB_MANAGER_MAGIC);
    if (store_leftover_list(m->store, ids, RETRIES_MAX, &count, &e))
        log_warning("cannot list files of ended runs: %s", e.text);
    for (size_t i = 0; i < count; i++)
        cleanup_take_over(m, ids[i]);
    cleanup_keep_limits(m);
}

void cleanup_stop(struct job_manager *m)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    for (struct cleanup_later *later; (later = m->cleanup_later);) {
        m->cleanup_later = later->next;
        free(later->run_dir);
        free(later);
    }
}

/* ---------------------------------------------------------------- the end of a run */

static void cleanup_measure(const struct job_manager *m, int64_t id, const char *run_dir)
{
    struct error e;

    if (store_job_set_disk(m->store, id, file_tree_bytes(run_dir), &e))
        log_warning("job %lld: cannot store its size: %s", (long long)id, e.text);
}

double cleanup_measure_next(struct job_manager *m)
{
    struct store_job job;
    struct error e;

    if (store_job_unmeasured(m->store, m->measured_id, &m->measured_id, &e) || !m->measured_id)
        return INFINITY;
    if (store_job_get(m->store, m->measured_id, &job, &e) == 0) {
        if (run_dir_look(m->store, &job, &e) == RUN_DIR_OWN)
            cleanup_measure(m, job.id, job.run_dir);
        store_job_clear(&job);
    }
    return clock_monotonic() + MEASURE_SECONDS;
}

/* Keeps the last `keep` bytes of a log, from the first whole line on, after a line that says so. */
static int cleanup_cut_log(const char *path, int64_t size, int64_t keep, struct error *e)
{
    char title[128], *text = calloc(1, (size_t)keep + sizeof title + 1);
    int fd = file_open(path, e);
    ssize_t n = -1;
    int used =
        snprintf(title, sizeof title,
                 "[traind: the first part of this log was removed: log_limit_bytes = %lld]\n",
                 (long long)keep);

    if (text && fd >= 0)
        n = pread(fd, text + used, (size_t)keep, (off_t)(size - keep));
    int status = fd < 0 ? fd : n < 0 ? error_set_errno(e, errno, "cannot cut %s", path) : 0;
    if (!status) {
        size_t bytes = (size_t)n;
        text[(size_t)used + bytes] = '\0';
        char *line = strchr(text + used, '\n');
        char *from = line ? line + 1 : text + used;
        char *start = memcpy(from - used, title, (size_t)used);
        status = file_write_atomic(path, start, (size_t)(text + used + bytes - start), e);
    }
    if (fd >= 0)
        close(fd);
    free(text);
    return status;
}

void cleanup_run(struct job_manager *m, const struct active_job *a)
{
    int64_t limit = m->limits.log_limit_bytes;
    char path[PATH_MAX];
    struct stat st;
    struct error e;

    assert_object(a, ACTIVE_JOB_MAGIC);
    file_path(path, &e, "%s/stdout.log", a->attempt_dir);
    if (limit > 0 && stat(path, &st) == 0 && st.st_size > limit &&
        cleanup_cut_log(path, st.st_size, limit, &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
    if (cleanup_unfinished(a->run_dir, &e)) {
        log_warning("job %lld: %s; retrying until it can be removed", (long long)a->id, e.text);
        cleanup_put_off(m, a->id, a->run_dir, RETRY_SECONDS);
        cleanup_store_left(m, a->id, true);
    }
    if (m->limits.keep_checkpoints > 0 && !file_path(path, &e, "%s/checkpoints", a->run_dir))
        checkpoint_keep(path, INT64_MAX, m->limits.keep_checkpoints, false);
    cleanup_measure(m, a->id, a->run_dir);
}
