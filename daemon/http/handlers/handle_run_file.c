#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/http/handlers/run_file.h"
#include "daemon/http/routes.h"
#include "daemon/job/run_dir.h"

static int trace_send_file(struct reply *r, int fd, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size == 0) {
        close(fd);
        return error_set(e, ERR_IO, "the trace cannot be read");
    }
    r->status = 200;
    r->type = "application/json";
    r->fd = fd;
    r->file_bytes = (uint64_t)st.st_size;
    return 0;
}

/* The newest attempt that got as far as its profiled steps: a later one may have begun behind them.
 */
static int open_newest(const struct store_job *job, int64_t attempt)
{
    char name[64];
    int fd = -1;

    for (errno = ENOENT; fd < 0 && errno == ENOENT && attempt > 0; attempt--) {
        snprintf(name, sizeof name, "attempt-%lld/trace.json", (long long)attempt);
        fd = run_file_open(job->run_dir, name);
    }
    return fd;
}

int handle_trace(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    int status = run_dir_check(q->app->store, &job, e);
    int fd = status ? -1 : open_newest(&job, job.attempt);
    int why = errno;
    store_job_clear(&job);
    if (status)
        return status;
    if (fd >= 0)
        return trace_send_file(r, fd, e);
    if (why == ENOENT)
        return error_set(e, ERR_NOT_FOUND,
                         "job %lld has no trace: its document says no profile.steps, or these "
                         "steps are not done yet",
                         (long long)q->id);
    return error_set_errno(e, why, "cannot open the trace of job %lld", (long long)q->id);
}
