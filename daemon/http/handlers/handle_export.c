/* A job's logs in the formats of others. */
#include <stdio.h>
#include <stdlib.h>

#include "common/xalloc.h"
#include "daemon/export/export.h"
#include "daemon/http/routes.h"

typedef int exporter(struct store *store, const struct store_job *job, FILE *out, struct error *e);

/* file: how a browser is to name it, with the job's id between prefix and suffix. */
static int export_send(const struct request *q, exporter *export, const char *type,
                       const char *prefix, const char *suffix, struct reply *r, struct error *e)
{
    struct store_job job;
    char *text = NULL;
    size_t bytes;

    if (store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    FILE *out = must_alloc(open_memstream(&text, &bytes));
    int status = export(q->app->store, &job, out, e);
    fclose(out);
    store_job_clear(&job);
    if (status == 0)
        status = reply_text(r, 200, type, text, bytes, e);
    if (status == 0)
        reply_header(r, "Content-Disposition", "attachment; filename=\"%sjob-%lld%s\"", prefix,
                     (long long)q->id, suffix);
    free(text);
    return status;
}

int handle_mllog(const struct request *q, struct reply *r, struct error *e)
{
    return export_send(q, export_mllog, "text/plain; charset=utf-8", "", "-mllog.txt", r, e);
}

int handle_tensorboard(const struct request *q, struct reply *r, struct error *e)
{
    return export_send(q, export_tensorboard, "application/octet-stream", "events.out.tfevents.",
                       "", r, e);
}
