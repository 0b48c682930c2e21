#include "daemon/export/export.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"

static int write_mllog(struct store *store, const struct store_job *job, struct error *e)
{
    char path[PATH_MAX], *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return error_set(e, ERR_NO_MEMORY, "no memory for mllog.txt");
    int status = export_mllog(store, job, out, e);
    fclose(out);
    snprintf(path, sizeof path, "%s/mllog.txt", job->run_dir);
    if (status == 0)
        status = file_write_atomic(path, text, bytes, e);
    free(text);
    return status;
}

int export_write(struct store *store, int64_t job_id, struct error *e)
{
    struct store_job job;

    if (store_job_get(store, job_id, &job, e))
        return -(int)e->code;
    int status = write_mllog(store, &job, e);
    store_job_clear(&job);
    return status;
}
