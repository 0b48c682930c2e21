#include "daemon/http/handlers/provenance/job_provenance.h"

#include "common/json.h"
#include "common/log.h"
#include "common/run/provenance.h"
#include "daemon/http/handlers/run/run_file.h"
#include "daemon/job/run_dir.h"

/* What workers wrote: anything may stand there. */
json_t *job_provenance_file(const struct request *q, const struct store_job *job,
                            size_t limit_bytes)
{
    struct error e;

    if (run_dir_check(q->app->store, job, &e))
        return NULL;
    int fd = run_file_open(job->run_dir, PROVENANCE_NAME);
    if (fd < 0)
        return NULL;
    json_t *file = json_read_fd(fd, PROVENANCE_NAME, limit_bytes, &e);
    if (!file)
        log_warning("job %lld: %s", (long long)job->id, e.text);
    if (file && !json_is_array(json_object_get(file, "attempts"))) {
        json_decref(file);
        file = NULL;
    }
    return file;
}

int job_provenance_load(const struct request *q, int64_t id, struct job_provenance *p,
                        struct error *e)
{
    *p = (struct job_provenance){0};
    int status = store_job_get(q->app->store, id, &p->job, e);

    if (status)
        return status;
    p->file = job_provenance_file(q, &p->job, PROVENANCE_LIMIT_BYTES);
    p->attempt = provenance_attempt(p->file);
    return 0;
}

void job_provenance_clear(struct job_provenance *p)
{
    store_job_clear(&p->job);
    json_decref(p->file);
    *p = (struct job_provenance){0};
}
