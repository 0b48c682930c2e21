/* Files that an attempt leaves in its folder, as they are. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/http/handlers/run/run_file.h"
#include "daemon/http/routes.h"
#include "daemon/job/run_dir.h"

struct run_file {
    const char *name, *what, *type;
    const char *why_not; /* what a job that has none is told */
};

static const struct run_file trace_file = {
    "trace.json", "trace", "application/json",
    "its document says no profile.steps, or these steps are not done yet"};
static const struct run_file layers_file = {
    "layers.txt", "table of layers", "text/plain; charset=utf-8",
    "its document says no profile.steps, or these steps are not done yet"};
static const struct run_file predictions_file = {
    "predictions.csv", "predictions", "text/csv; charset=utf-8",
    "its document does not say eval.predictions, or it has not evaluated yet"};

static int run_file_send(const struct run_file *file, struct reply *r, int fd, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size == 0) {
        close(fd);
        return error_set(e, ERR_IO, "the %s cannot be read", file->what);
    }
    reply_file(r, 200, file->type, fd, 0, (uint64_t)st.st_size);
    return 0;
}

/* The newest attempt that got as far as writing it: a later one may have begun behind that, or not
 * have come to it. */
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
