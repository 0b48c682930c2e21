#include "daemon/http/handlers/handle_run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/system/file.h"
#include "common/text.h"
#include "daemon/job/run_dir.h"

static int run_file_only_file_or_folder(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

int run_file_nameless(const struct request *q, const char *what, struct error *e)
{
    char path[PATH_MAX];

    if (file_path(path, e, "%s/archive-XXXXXX", q->config->state))
        return -(int)e->code;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot create a file for %s in %s", what,
                               q->config->state);
    unlink(path);
    return fd;
}

int run_file_open(const char *run_dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int folder = open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return -1;
    int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
    int why = errno;
    close(folder);
    errno = why;
    return fd < 0 ? -1 : run_file_only_file_or_folder(fd);
}

struct run_file {
    const char *name, *what, *type;
    const char *why_not; /* why a job may have no such file */
};

static const struct run_file trace_file = {
    "trace.json", "trace", "application/json",
    "its document has no profile.steps, or these steps have not been run yet"};
static const struct run_file layers_file = {
    "layers.txt", "table of layers", "text/plain; charset=utf-8",
    "its document has no profile.steps, or these steps have not been run yet"};
static const struct run_file predictions_file = {
    "predictions.csv", "predictions", "text/csv; charset=utf-8",
    "its document does not set eval.predictions, or it has not been evaluated yet"};

static int run_file_send(const struct run_file *file, struct reply *r, int fd, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size == 0) {
        close(fd);
        return error_set(e, ERR_IO, "cannot read the %s", file->what);
    }
    reply_file(r, 200, file->type, fd, 0, (uint64_t)st.st_size);
    return 0;
}

/* Opens the file of the newest attempt that wrote it. */
static int run_file_open_newest(const struct run_file *file, const struct store_job *job)
{
    char name[64];
    int64_t attempt = job->attempt;
    int fd = -1;

    for (errno = ENOENT; fd < 0 && errno == ENOENT && attempt > 0; attempt--) {
        snprintf(name, sizeof name, "attempt-%lld/%s", (long long)attempt, file->name);
        fd = run_file_open(job->run_dir, name);
    }
    return fd;
}

static int run_file_reply(const struct run_file *file, const struct request *q, struct reply *r,
                          struct error *e)
{
    struct store_job job;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    int status = run_dir_check(q->app->store, &job, e);
    int fd = status ? -1 : run_file_open_newest(file, &job);
    int why = errno;
    store_job_clear(&job);
    if (status)
        return status;
    if (fd >= 0)
        return run_file_send(file, r, fd, e);
    if (why == ENOENT)
        return error_set(e, ERR_NOT_FOUND, "job %lld has no %s: %s", (long long)q->id, file->what,
                         file->why_not);
    return error_set_errno(e, why, "cannot open the %s of job %lld", file->what, (long long)q->id);
}

int handle_trace(const struct request *q, struct reply *r, struct error *e)
{
    return run_file_reply(&trace_file, q, r, e);
}

int handle_layers(const struct request *q, struct reply *r, struct error *e)
{
    return run_file_reply(&layers_file, q, r, e);
}

int handle_predictions(const struct request *q, struct reply *r, struct error *e)
{
    return run_file_reply(&predictions_file, q, r, e);
}

#define CHUNK_BYTES (8 * 1024 * 1024) /* per response: readers continue at X-Log-Next */
#define LOG_TYPE    "text/plain; charset=utf-8"

static int handle_log_reply_empty(struct reply *r, int64_t next, struct error *e)
{
    reply_header(r, "X-Log-Next", "%lld", (long long)next);
    return reply_text(r, 200, LOG_TYPE, "", 0, e);
}

/* Takes ownership of fd. */
static int handle_log_send_part(struct reply *r, int fd, int64_t from, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size <= from) {
        close(fd);
        return handle_log_reply_empty(r, from, e);
    }
    int64_t bytes = st.st_size - from < CHUNK_BYTES ? st.st_size - from : CHUNK_BYTES;
    reply_file(r, 200, LOG_TYPE, fd, (uint64_t)from, (uint64_t)bytes);
    reply_header(r, "X-Log-Next", "%lld", (long long)(from + bytes));
    return 0;
}

static int64_t handle_log_tail(int fd, int64_t from, int64_t tail)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size - tail > from ? st.st_size - tail : from;
}

int handle_log(const struct request *q, struct reply *r, struct error *e)
{
    char name[64];
    struct store_job job;
    int64_t from, attempt, tail;

    if (request_query_int(q, "from", 0, INT64_MAX, 0, &from, e) ||
        request_query_int(q, "tail", 0, CHUNK_BYTES, 0, &tail, e) ||
        request_query_int(q, "attempt", 1, INT32_MAX, 0, &attempt, e) ||
        store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    int64_t newest = job.attempt;
    if (attempt == 0)
        attempt = newest;
    snprintf(name, sizeof name, "attempt-%lld/stdout.log", (long long)attempt);
    int status = run_dir_check(q->app->store, &job, e);
    int fd = status || attempt > newest ? -1 : run_file_open(job.run_dir, name);
    int why = errno;
    store_job_clear(&job);
    if (status)
        return status;
    if (attempt > newest)
        return error_set(e, ERR_NOT_FOUND, "job %lld has had %lld attempt%s so far",
                         (long long)q->id, (long long)newest, plural(newest));
    if (fd < 0 && why == ENOENT)
        return handle_log_reply_empty(r, from, e); /* nothing has been written yet */
    if (fd < 0)
        return error_set_errno(e, why, "cannot open the log %s of job %lld", name,
                               (long long)q->id);
    return handle_log_send_part(r, fd, tail > 0 ? handle_log_tail(fd, from, tail) : from, e);
}
