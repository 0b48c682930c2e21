/* Exports a job's logs in other formats, and the job as one file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/run/checkpoints.h"
#include "common/run/provenance.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "config.h"
#include "daemon/export/job_archive.h"
#include "daemon/export/mllog.h"
#include "daemon/export/tensorboard.h"
#include "daemon/http/handlers/handle_run_file.h"
#include "daemon/http/routes.h"
#include "daemon/job/resume_point.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/event.h"
#include "daemon/store/store_open.h"

typedef int exporter(struct store *store, const struct store_job *job, FILE *out, struct error *e);

/* The file name is PREFIXjob-IDSUFFIX. */
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

static bool export_write_event(void *context, const struct store_event_row *row)
{
    return fprintf(context, "{\"attempt\": %lld, \"t\": %.6f, \"type\": \"%s\", \"body\": %s}\n",
                   (long long)row->attempt, row->t, row->type, row->body) > 0;
}

static int export_add_events(const struct request *q, struct job_archive_files *files,
                             struct error *e)
{
    struct store_event_range range = {.job_id = q->id};
    int fd = run_file_nameless(q, "the archive", e);
    FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");

    if (fd < 0)
        return fd;
    if (!out) {
        close(fd);
        return error_set(e, ERR_NO_MEMORY, "out of memory for the archive");
    }
    int status = store_event_each(q->app->store, &range, export_write_event, out, e);
    bool failed = ferror(out);
    if ((fclose(out) || failed) && !status)
        status = error_set_errno(e, errno ? errno : EIO, "cannot write the events of the job");
    if (!status)
        return job_archive_add_fd(files, "events.jsonl", fd, e);
    close(fd);
    return status;
}

static int export_add_run_file(const struct store_job *job, const char *name,
                               struct job_archive_files *files, struct error *e)
{
    struct stat st;
    int fd = run_file_open(job->run_dir, name);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s of job %lld", name, (long long)job->id);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return 0;
    }
    return job_archive_add_file(files, name, fd, e);
}

static int export_add_attempts(const struct store_job *job, struct job_archive_files *files,
                               struct error *e)
{
    static const char *const names[] = {"stdout.log", "trace.json", "layers.txt",
                                        "predictions.csv"};
    char name[128];
    int status = 0;

    for (int64_t attempt = 1; attempt <= job->attempt && !status; attempt++)
        for (size_t i = 0; !status && i < sizeof names / sizeof names[0]; i++) {
            snprintf(name, sizeof name, "attempt-%lld/%s", (long long)attempt, names[i]);
            status = export_add_run_file(job, name, files, e);
        }
    return status;
}

static int export_add_weights(const struct store_job *job, struct job_archive_files *files,
                              struct error *e)
{
    int64_t step = resume_point_newest_step(job->run_dir, e);
    struct dirent **names = NULL;
    struct resume_point at;
    struct error ignored;
    char name[512];
    int status = 0;

    if (step < 0)
        return (int)step;
    if (step > 0 && resume_point_find(job->run_dir, &at, &ignored) > 0 && at.best > 0)
        step = at.best;
    if (step == 0)
        return error_set(e, ERR_NOT_FOUND, "job %lld has no checkpoint, so no weights",
                         (long long)job->id);
    snprintf(name, sizeof name, "checkpoints/step-%08lld", (long long)step);
    int folder = run_file_open(job->run_dir, name);
    int count = folder < 0 ? -1 : scandirat(folder, ".", &names, NULL, alphasort);
    if (count < 0)
        status = error_set_errno(e, errno, "cannot list %s of job %lld", name, (long long)job->id);
    for (int i = 0; !status && i < count; i++) {
        snprintf(name, sizeof name, "checkpoints/step-%08lld/%s", (long long)step,
                 names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            status = export_add_run_file(job, name, files, e);
    }
    checkpoint_list_free(names, count);
    if (folder >= 0)
        close(folder);
    return status;
}

static int export_add_all(const struct request *q, const struct store_job *job, bool weights,
                          struct job_archive_files *files, struct error *e)
{
    struct error missing;
    int status = job_archive_add_text(files, "job.json", job->spec, e);

    if (!status)
        status = job_archive_add_text(files, "plan.json", job->plan, e);
    if (!status)
        status = export_add_events(q, files, e);
    if (status)
        return status;
    /* A job that never ran has no run directory. */
    bool own = run_dir_check(q->app->store, job, &missing) == 0;
    if (!own && weights)
        return error_set(e, missing.code, "%s", missing.text);
    if (own)
        status = export_add_run_file(job, PROVENANCE_NAME, files, e);
    if (own && !status)
        status = export_add_run_file(job, "result.json", files, e);
    if (own && !status)
        status = export_add_attempts(job, files, e);
    return status || !weights ? status : export_add_weights(job, files, e);
}

static json_t *export_manifest_of(const struct request *q, const struct store_job *job)
{
    json_t *from = job->imported_from ? json_loads(job->imported_from, 0, NULL) : NULL;

    return json_pack(
        "{s:i, s:s, s:s, s:I, s:s?, s:s, s:s?, s:s?, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
        JOB_ARCHIVE_FORMAT, "version", PACKAGE_VERSION, "store",
        store_identity(q->app->store)->uuid, "job", (json_int_t)job->id, "name", job->name, "state",
        job_state_name(job->state), "reason", job->reason, "submitted_by", job->submitted_by,
        "attempts", (json_int_t)job->attempt, "created_at", json_number(job->created_at),
        "started_at", json_number_or_null(job->started_at), "finished_at",
        json_number_or_null(job->finished_at), "exit_code",
        json_integer_or_null(job->exit_code != STORE_NO_EXIT, (json_int_t)job->exit_code),
        "exit_signal",
        json_integer_or_null(job->exit_signal != STORE_NO_EXIT, (json_int_t)job->exit_signal),
        "imported_from", from ? from : json_null());
}

static int export_send_archive(const struct request *q, const struct store_job *job,
                               const struct job_archive_files *files, struct reply *r,
                               struct error *e)
{
    int fd = run_file_nameless(q, "the archive", e);
    struct stat st;

    if (fd < 0)
        return fd;
    json_t *manifest = export_manifest_of(q, job);
    int status = job_archive_write(files, manifest, (int64_t)job->finished_at, fd, e);
    json_decref(manifest);
    if (!status && fstat(fd, &st))
        status = error_set_errno(e, errno, "cannot determine the size of the archive");
    if (status) {
        close(fd);
        return status;
    }
    reply_file(r, 200, "application/gzip", fd, 0, (uint64_t)st.st_size);
    reply_header(r, "Content-Disposition", "attachment; filename=\"job-%lld.tar.gz\"",
                 (long long)job->id);
    return 0;
}

static int export_read_weights_flag(const struct request *q, bool *weights, struct error *e)
{
    const char *text = request_query(q, "weights");

    *weights = text && strcmp(text, "true") == 0;
    if (!text || *weights || strcmp(text, "false") == 0)
        return 0;
    return error_set(e, ERR_USAGE, "weights must be true or false, not \"%.40s\"", text);
}

int handle_archive(const struct request *q, struct reply *r, struct error *e)
{
    struct job_archive_files files = {0};
    struct store_job job;
    bool weights;

    if (export_read_weights_flag(q, &weights, e) || store_job_get(q->app->store, q->id, &job, e))
        return -(int)e->code;
    int status = 0;
    if (!job_state_is_final(job.state))
        status = error_set(e, ERR_CONFLICT, "job %lld is %s: it can be exported when it has ended",
                           (long long)job.id, job_state_name(job.state));
    files.open = run_file_open;
    files.folder = job.run_dir;
    if (!status)
        status = export_add_all(q, &job, weights, &files, e);
    if (!status)
        status = export_send_archive(q, &job, &files, r, e);
    job_archive_files_clear(&files);
    store_job_clear(&job);
    return status;
}
