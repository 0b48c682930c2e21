#include "daemon/export/export.h"

#include <limits.h>
#include <stdlib.h>

#include "common/xalloc.h"
#include "common/system/file.h"
#include "daemon/export/mllog.h"
#include "daemon/export/tensorboard.h"

typedef int exporter(struct store *store, const struct store_job *job, FILE *out, struct error *e);

static int export_write_one(struct store *store, const struct store_job *job, exporter *export,
                            const char *path, struct error *e)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = must_alloc(open_memstream(&text, &bytes));

    int status = export(store, job, out, e);
    fclose(out);
    if (status == 0)
        status = file_write_unsynced(path, text, bytes, e);
    free(text);
    return status;
}

static int export_write_both(struct store *store, const struct store_job *job, struct error *e)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/mllog.txt", job->run_dir);
    if (export_write_one(store, job, export_mllog, path, e))
        return -(int)e->code;
    snprintf(path, sizeof path, "%s/tensorboard", job->run_dir);
    if (file_make_dirs_unsynced(path, e))
        return -(int)e->code;
    snprintf(path, sizeof path, "%s/tensorboard/" EXPORT_TENSORBOARD_NAME, job->run_dir,
             (long long)job->created_at, (long long)job->id);
    return export_write_one(store, job, export_tensorboard, path, e);
}

int export_write(struct store *store, int64_t job_id, struct error *e)
{
    struct store_job job;

    if (store_job_get(store, job_id, &job, e))
        return -(int)e->code;
    int status = export_write_both(store, &job, e);
    store_job_clear(&job);
    return status;
}
