#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/http/handlers/run/run_file.h"
#include "daemon/http/routes.h"
#include "daemon/job/run_dir.h"

#define CHUNK_BYTES (8 * 1024 * 1024) /* of one answer: readers go on at X-Log-Next */
#define LOG_TYPE    "text/plain; charset=utf-8"

static int log_reply_empty(struct reply *r, int64_t next, struct error *e)
{
    reply_header(r, "X-Log-Next", "%lld", (long long)next);
    return reply_text(r, 200, LOG_TYPE, "", 0, e);
}

/* The part of the file from byte from on; takes over fd. */
static int handle_log_send_part(struct reply *r, int fd, int64_t from, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size <= from) {
        close(fd);
        return log_reply_empty(r, from, e);
    }
    int64_t bytes = st.st_size - from < CHUNK_BYTES ? st.st_size - from : CHUNK_BYTES;
    reply_file(r, 200, LOG_TYPE, fd, (uint64_t)from, (uint64_t)bytes);
    reply_header(r, "X-Log-Next", "%lld", (long long)(from + bytes));
    return 0;
}

/* Where the last `tail` bytes begin, but not before from. */
static int64_t log_tail(int fd, int64_t from, int64_t tail)
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
        return log_reply_empty(r, from, e); /* nothing was written yet */
    if (fd < 0)
        return error_set_errno(e, why, "cannot open the log %s of job %lld", name,
                               (long long)q->id);
    return handle_log_send_part(r, fd, tail > 0 ? log_tail(fd, from, tail) : from, e);
}
