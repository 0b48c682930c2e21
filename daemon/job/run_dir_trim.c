#include "daemon/job/run_dir_trim.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/run/checkpoints.h"
#include "common/system/file.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_removal.h"
#include "daemon/store/job_row.h"

static void trim_checkpoints(const struct job_manager *m, const struct active_job *a)
{
    char folder[PATH_MAX];

    if (m->limits.keep_checkpoints > 0 &&
        (size_t)snprintf(folder, sizeof folder, "%s/checkpoints", a->run_dir) < sizeof folder)
        checkpoint_keep(folder, INT64_MAX, m->limits.keep_checkpoints, false);
}

/* The last bytes of a log, from the first whole line on, behind a line that tells of the rest. */
static int trim_cut_log(const char *path, int64_t size, int64_t keep, struct error *e)
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

static void trim_log(const struct job_manager *m, const struct active_job *a)
{
    char path[PATH_MAX];
    struct stat st;
    struct error e;

    if (m->limits.log_limit_bytes <= 0 ||
        (size_t)snprintf(path, sizeof path, "%s/stdout.log", a->attempt_dir) >= sizeof path ||
        stat(path, &st) || st.st_size <= m->limits.log_limit_bytes)
        return;
    if (trim_cut_log(path, st.st_size, m->limits.log_limit_bytes, &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
}

/* ---------------------------------------------------------------- unfinished checkpoints */

#define TRIM_AGAIN_SECONDS  5.0
#define TRIM_REMEMBERED_MAX 1000

/* An ended run whose unfinished checkpoint cannot be removed yet: its folder is read-only. */
struct trim_later {
    struct trim_later *next;
    int64_t id;
    char run_dir[];
};

static int trim_unfinished(const char *run_dir, struct error *e)
{
    char folder[PATH_MAX];

    if ((size_t)snprintf(folder, sizeof folder, "%s/checkpoints", run_dir) >= sizeof folder)
        return 0;
    return checkpoint_remove_unfinished(folder, e);
}

/* Whether something is left, for the next daemon. */
static void trim_store(struct job_manager *m, int64_t id, bool left)
{
    struct error e;

    if (store_leftover_set(m->store, id, left, &e))
        log_warning("job %lld: %s is not stored: %s", (long long)id,
                    left ? "what its run left" : "that nothing is left of its run", e.text);
}

static void trim_put_off(struct job_manager *m, int64_t id, const char *run_dir)
{
    struct trim_later *later = malloc(sizeof *later + strlen(run_dir) + 1);

    if (!later)
        return;
    later->id = id;
    strcpy(later->run_dir, run_dir);
    later->next = m->trim_later;
    m->trim_later = later;
    m->trim_next_at = clock_monotonic() + TRIM_AGAIN_SECONDS;
}

/* Its next checkpoint removes what is left of the earlier ones. */
static bool trim_runs_again(const struct job_manager *m, const char *run_dir)
{
    for (const struct active_job *a = m->active; a; a = a->next)
        if (strcmp(a->run_dir, run_dir) == 0)
            return true;
    return false;
}

void job_trim_again(struct job_manager *m, double now)
{
    struct error e;

    if (now < m->trim_next_at)
        return;
    pthread_mutex_lock(&m->files);
    for (struct trim_later **at = &m->trim_later, *later; (later = *at);) {
        bool runs = trim_runs_again(m, later->run_dir);
        if (!runs && trim_unfinished(later->run_dir, &e)) {
            at = &later->next;
            continue;
        }
        if (!runs)
            log_info("job %lld: its unfinished checkpoint is removed", (long long)later->id);
        trim_store(m, later->id, false);
        *at = later->next;
        free(later);
    }
    pthread_mutex_unlock(&m->files);
    m->trim_next_at = m->trim_later ? now + TRIM_AGAIN_SECONDS : INFINITY;
}

static void trim_take_up(struct job_manager *m, int64_t id)
{
    struct store_job job;
    struct error e;

    if (store_job_get(m->store, id, &job, &e)) {
        log_warning("job %lld: %s", (long long)id, e.text);
        return;
    }
    if (run_dir_look(m->store, &job, &e) == RUN_DIR_OWN) {
        log_warning("job %lld: an unfinished checkpoint in %s could not be removed before traind "
                    "was started; it is tried again until it can be",
                    (long long)id, job.run_dir);
        trim_put_off(m, id, job.run_dir);
        m->trim_next_at = clock_monotonic();
    } else {
        trim_store(m, id, false);
    }
    store_job_clear(&job);
}

void job_trim_remember(struct job_manager *m)
{
    int64_t ids[TRIM_REMEMBERED_MAX];
    size_t count;
    struct error e;

    if (store_leftover_list(m->store, ids, TRIM_REMEMBERED_MAX, &count, &e))
        log_warning("cannot list what ended runs left behind: %s", e.text);
    for (size_t i = 0; i < count; i++)
        trim_take_up(m, ids[i]);
}

void job_trim_forget(struct job_manager *m)
{
    for (struct trim_later *later; (later = m->trim_later);) {
        m->trim_later = later->next;
        free(later);
    }
}

/* ---------------------------------------------------------------- sizes */

#define MEASURE_EVERY_SECONDS 0.01

static void trim_measure(const struct job_manager *m, int64_t id, const char *run_dir)
{
    struct error e;

    if (store_job_set_disk(m->store, id, file_tree_bytes(run_dir), &e))
        log_warning("job %lld: its size is not stored: %s", (long long)id, e.text);
}

void job_measure_older(struct job_manager *m, double now)
{
    struct store_job job;
    struct error e;

    if (now < m->measure_next_at)
        return;
    int status = store_job_unmeasured(m->store, m->measured_id, &m->measured_id, &e);
    m->measure_next_at = status || !m->measured_id ? INFINITY : now + MEASURE_EVERY_SECONDS;
    if (isinf(m->measure_next_at) || store_job_get(m->store, m->measured_id, &job, &e))
        return;
    if (run_dir_look(m->store, &job, &e) == RUN_DIR_OWN)
        trim_measure(m, job.id, job.run_dir);
    store_job_clear(&job);
}

/* ---------------------------------------------------------------- the end of a run */

void job_trim_run(struct job_manager *m, const struct active_job *a)
{
    struct error e;

    trim_log(m, a);
    if (trim_unfinished(a->run_dir, &e)) {
        log_warning("job %lld: %s; it is tried again until it can be", (long long)a->id, e.text);
        trim_put_off(m, a->id, a->run_dir);
        trim_store(m, a->id, true);
    }
    trim_checkpoints(m, a);
    trim_measure(m, a->id, a->run_dir);
}
