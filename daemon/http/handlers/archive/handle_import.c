/* POST /v1/jobs/import: the archive of a job of another daemon becomes a job that has ended here.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/system/file.h"
#include "daemon/archive/job_archive.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/handlers/archive/import_documents.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/job/queue/size.h"
#include "daemon/job/dir/run_dir.h"

#define ATTEMPTS_MOST 100000
#define REASON_BYTES  4096

struct importing {
    const struct request *q;
    char folder[PATH_MAX]; /* it is unpacked into; "": there is none to remove */
    char digest[DIGEST_BYTES];
    json_t *manifest;
    struct import_documents documents;
    char *from;
};

/* ---- the manifest */

static int text_of(const json_t *manifest, const char *key, size_t most, const char **text,
                   struct error *e)
{
    const json_t *value = json_object_get(manifest, key);

    *text = json_string_value(value);
    if ((!value || json_is_null(value) || *text) && (!*text || strlen(*text) <= most))
        return 0;
    return error_set(e, ERR_INVALID,
                     "the archive's manifest: %s must be a text of at most %zu bytes, or null", key,
                     most);
}

static int time_of(const json_t *manifest, const char *key, double *t, struct error *e)
{
    *t = json_get_number(manifest, key, 0);
    return *t >= 0 && *t < 1e11
               ? 0
               : error_set(e, ERR_INVALID, "the archive's manifest: %s must be Unix seconds", key);
}

static int64_t exit_of(const json_t *manifest, const char *key)
{
    json_int_t value = json_get_integer(manifest, key, STORE_NO_EXIT);
    return value >= 0 && value <= 255 ? (int64_t)value : STORE_NO_EXIT;
}

/* What is shown of where it came from. */
static int read_from(struct importing *i, struct error *e)
{
    const json_t *m = i->manifest;
    const char *store, *by, *version;
    double created;
    json_int_t job = json_get_integer(m, "job", 0);

    if (text_of(m, "store", 64, &store, e) || text_of(m, "submitted_by", 200, &by, e) ||
        text_of(m, "version", 40, &version, e) || time_of(m, "created_at", &created, e))
        return -(int)e->code;
    if (!store || !version || job < 1)
        return error_set(e, ERR_INVALID,
                         "the archive's manifest does not say of which job of which database it is "
                         "(store, job, version)");
    json_t *from =
        json_pack("{s:s, s:I, s:s?, s:s, s:f, s:s}", "store", store, "job", job, "submitted_by", by,
                  "version", version, "imported_at", clock_now(), "xxh128", i->digest);
    i->from = from ? json_dumps(from, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(from);
    return i->from ? 0 : error_set(e, ERR_INVALID, "the archive's manifest is not UTF-8");
}

static int read_state(const json_t *manifest, struct store_import *job, struct error *e)
{
    job->state = job_state_of(json_get_text(manifest, "state", ""));
    if (job->state == JOB_STATE_COUNT || !job_state_is_final(job->state))
        return error_set(e, ERR_INVALID,
                         "the archive's manifest: state must be succeeded, failed or cancelled: "
                         "only jobs that have ended are exported");
    job->attempt = json_get_integer(manifest, "attempts", -1);
    if (job->attempt < 0 || job->attempt > ATTEMPTS_MOST)
        return error_set(e, ERR_INVALID, "the archive's manifest: attempts must be from 0 to %d",
                         ATTEMPTS_MOST);
    return 0;
}

static int read_head(const json_t *manifest, struct store_import *job, struct error *e)
{
    if (read_state(manifest, job, e) ||
        text_of(manifest, "reason", REASON_BYTES, &job->reason, e) ||
        time_of(manifest, "created_at", &job->created_at, e) ||
        time_of(manifest, "started_at", &job->started_at, e) ||
        time_of(manifest, "finished_at", &job->finished_at, e))
        return -(int)e->code;
    job->exit_code = exit_of(manifest, "exit_code");
    job->exit_signal = exit_of(manifest, "exit_signal");
    return 0;
}

/* ---- the folder */

static int make_folder(struct importing *i, struct error *e)
{
    if ((size_t)snprintf(i->folder, sizeof i->folder, "%s/jobs/" RUN_DIR_IMPORT "XXXXXX",
                         i->q->config->state) >= sizeof i->folder)
        return error_set(e, ERR_INTERNAL, "the path of the state folder is too long");
    if (mkdtemp(i->folder))
        return 0;
    int reason = errno;
    i->folder[0] = '\0';
    return error_set_errno(e, reason, "cannot create a folder for the import in %s/jobs",
                           i->q->config->state);
}

static int import_place(void *context, const struct store_job *job, struct error *e)
{
    struct importing *i = context;
    char to[PATH_MAX];

    snprintf(to, sizeof to, "%.*s/jobs/%lld", PATH_MAX - 64, i->q->config->state,
             (long long)job->id);
    int status = run_dir_adopt(i->q->app->store, job, i->folder, to, e);
    if (!status)
        memcpy(i->folder, to, sizeof to); /* until the commit is done it may have to go again */
    return status;
}

static int import_next(void *context, struct store_import_event *event, struct error *e)
{
    struct importing *i = context;
    return import_documents_next(&i->documents, event, e);
}

/* ---- the whole */

static int import_store(struct importing *i, struct store_import *job, int64_t *id, bool *existed,
                        struct error *e)
{
    const struct import_documents *d = &i->documents;

    job->name = d->spec->name;
    job->by = request_by(i->q);
    job->spec = d->spec_text;
    job->plan = d->plan_text;
    job->tags = (const char *const *)d->spec->tags;
    job->tag_count = d->spec->tag_count;
    job->note = d->spec->note;
    job->from = i->from;
    job->digest = i->digest;
    job->size = job_size(i->q->app->jobs, d->spec, d->own);
    job->size.slots = 0; /* it took none here */
    job->size.predicted_seconds = job->size.predicted_low_seconds =
        job->size.predicted_high_seconds = NAN;
    job->now = clock_now();
    job->context = i;
    job->next = import_next;
    job->place = import_place;
    int status = store_job_import(i->q->app->store, job, id, existed, e);
    if (!status && !*existed)
        i->folder[0] = '\0';
    return status;
}

static int import_read(struct importing *i, int64_t *id, bool *existed, struct error *e)
{
    struct store_import job = {0};
    uint64_t limit = 4 * (uint64_t)i->q->config->max_import_bytes; /* texts become a tenth */
    int status = make_folder(i, e);

    if (!status)
        status = job_archive_read(i->q->body_fd, i->folder, limit, &i->manifest, i->digest, e);
    if (!status)
        status = read_head(i->manifest, &job, e);
    if (!status)
        status = read_from(i, e);
    if (!status)
        status = import_documents_read(i->folder, job.attempt, &i->documents, e);
    return status ? status : import_store(i, &job, id, existed, e);
}

int handle_import(const struct request *q, struct reply *r, struct error *e)
{
    struct importing *i = calloc(1, sizeof *i);
    struct store_job job;
    struct error ignored;
    int64_t id = 0;
    bool existed = false;

    if (!i)
        return error_set(e, ERR_NO_MEMORY, "no memory to import a job");
    i->q = q;
    int status = q->body_fd >= 0 ? import_read(i, &id, &existed, e)
                                 : error_set(e, ERR_USAGE,
                                             "send the archive of a job as the body, as in "
                                             "curl --data-binary @job-7.tar.gz");
    if (*i->folder && file_remove_tree(i->folder, &ignored))
        log_warning("an import is left over: %s", ignored.text);
    import_documents_clear(&i->documents);
    json_decref(i->manifest);
    free(i->from);
    free(i);
    if (status || (status = store_job_get(q->app->store, id, &job, e)))
        return status;
    if (!existed)
        log_info("job %lld: imported by %s", (long long)id, job_by_words(request_by(q)));
    reply_header(r, "Location", "/v1/jobs/%lld", (long long)id);
    return reply_job(r, q, existed ? 200 : 201, &job, e);
}
