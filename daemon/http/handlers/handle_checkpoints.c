#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/json.h"
#include "common/run/checkpoints.h"
#include "common/run/onnx.h"
#include "common/run/safetensors.h"
#include "common/xalloc.h"
#include "daemon/http/handlers/handle_run_file.h"
#include "daemon/http/routes.h"
#include "daemon/job/run_dir.h"

/* Cache of digest checks: whether a file has its digest, valid while its inode, size and time are
 * unchanged. */
#define SLOTS 1024 /* a file replaces another with the same slot */

struct verdict {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
    char digest[DIGEST_BYTES]; /* "": the slot is free */
    bool whole;
};

static struct verdict verdicts[SLOTS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct verdict *checkpoints_verdict_slot(const struct stat *st)
{
    return &verdicts[(st->st_ino ^ st->st_dev) % SLOTS];
}

static bool checkpoints_find_verdict(const struct stat *st, const char *digest, bool *whole)
{
    pthread_mutex_lock(&mutex);
    const struct verdict *v = checkpoints_verdict_slot(st);
    bool found = v->device == st->st_dev && v->inode == st->st_ino && v->bytes == st->st_size &&
                 v->changed.tv_sec == st->st_mtim.tv_sec &&
                 v->changed.tv_nsec == st->st_mtim.tv_nsec && strcmp(v->digest, digest) == 0;
    *whole = found && v->whole;
    pthread_mutex_unlock(&mutex);
    return found;
}

static void checkpoints_keep_verdict(const struct stat *st, const char *digest, bool whole)
{
    if (strlen(digest) >= DIGEST_BYTES)
        return;
    pthread_mutex_lock(&mutex);
    struct verdict *v = checkpoints_verdict_slot(st);
    *v = (struct verdict){.device = st->st_dev,
                          .inode = st->st_ino,
                          .bytes = st->st_size,
                          .changed = st->st_mtim,
                          .whole = whole};
    strcpy(v->digest, digest);
    pthread_mutex_unlock(&mutex);
}

static int checkpoint_open(const char *run_dir, int64_t step, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "checkpoints/step-%08lld/%s", (long long)step, name);
    return run_file_open(run_dir, path);
}

static const char *checkpoint_fd_path(int fd, char path[32])
{
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return path;
}

/* Returns NULL if it is missing or invalid. */
static json_t *checkpoint_read_state(const char *run_dir, int64_t step, struct stat *st)
{
    char path[32], hex[DIGEST_BYTES];
    struct error ignored;
    int fd = checkpoint_open(run_dir, step, "state.json");

    if (fd < 0)
        return NULL;
    json_t *state =
        fstat(fd, st) ? NULL : json_document_load(checkpoint_fd_path(fd, path), &ignored);
    close(fd);
    if (!state)
        return NULL;
    checkpoint_state_digest(state, hex);
    const char *wanted = json_string_value(json_object_get(state, "xxh128"));
    if (wanted && strcmp(wanted, hex) == 0)
        return state;
    json_decref(state);
    return NULL;
}

static const char *checkpoints_digest_in(const json_t *state, const char *name)
{
    return json_string_value(json_object_get(json_object_get(state, "files"), name));
}

static bool checkpoints_is_as_written(const json_t *state, const char *name, int fd)
{
    char path[32], hex[DIGEST_BYTES];
    const char *wanted = checkpoints_digest_in(state, name);
    struct error ignored;
    struct stat st;

    if (!wanted || fstat(fd, &st) || digest_file(checkpoint_fd_path(fd, path), hex, &ignored))
        return false;
    bool whole = strcmp(wanted, hex) == 0;
    checkpoints_keep_verdict(&st, wanted, whole);
    return whole;
}

static bool checkpoints_is_after(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

static bool checkpoints_has_its_size(int fd)
{
    char path[32];
    struct safetensors *file;
    struct error ignored;

    if (safetensors_open(checkpoint_fd_path(fd, path), &file, &ignored))
        return false;
    safetensors_close(file);
    return true;
}

/* Verifies the digest only once, and only if the file changed after state.json, which is written
 * last. */
static bool checkpoints_seems_whole(const json_t *state, const struct stat *state_file,
                                    const char *name, int fd)
{
    const char *wanted = checkpoints_digest_in(state, name);
    struct stat st;
    bool whole;

    if (!wanted || fstat(fd, &st) || !checkpoints_has_its_size(fd))
        return false;
    if (checkpoints_find_verdict(&st, wanted, &whole))
        return whole;
    return !checkpoints_is_after(&st.st_mtim, &state_file->st_mtim) ||
           checkpoints_is_as_written(state, name, fd);
}

static bool checkpoint_is_complete(const char *run_dir, int64_t step, const json_t *state,
                                   const struct stat *state_file)
{
    json_t *files = checkpoint_files(state), *digest;
    const char *name;
    bool whole = files != NULL;

    json_object_foreach (files, name, digest) {
        int fd = whole ? checkpoint_open(run_dir, step, name) : -1;
        whole = fd >= 0 && checkpoints_seems_whole(state, state_file, name, fd);
        if (fd >= 0)
            close(fd);
    }
    return whole;
}

/* *best: the steps of the best ones, taken from the first state. */
static json_t *checkpoint_to_json(const char *run_dir, int64_t step, json_t **best)
{
    struct stat st = {0}, state_file;
    json_t *state = checkpoint_read_state(run_dir, step, &state_file);
    json_t *epoch = json_incref(json_object_get(state, "epoch"));
    const json_t *v = json_object_get(state, "evaluation");
    bool own = v && json_get_integer(v, "step", -1) == step;
    json_t *top1 = json_number_or_null(own ? json_get_number(v, "top1", NAN) : NAN);
    json_t *loss = json_number_or_null(own ? json_get_number(v, "loss", NAN) : NAN);
    int fd = checkpoint_open(run_dir, step, CHECKPOINT_MODEL);

    if (fd >= 0) {
        fstat(fd, &st);
        close(fd);
    }
    bool complete = checkpoint_is_complete(run_dir, step, state, &state_file);
    if (!*best)
        *best = json_incref((json_t *)checkpoint_best(state));
    json_decref(state);
    return json_pack(
        "{s:I, s:o, s:I, s:o, s:b, s:o, s:o, s:o}", "step", (json_int_t)step, "epoch",
        epoch ? epoch : json_null(), "bytes", (json_int_t)st.st_size, "written",
        fd >= 0 ? json_number((double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9)
                : json_null(),
        "complete", complete, "top1", top1, "loss", loss, "best",
        json_integer_or_null(checkpoint_place(*best, step), checkpoint_place(*best, step)));
}

static int checkpoints_list_of(const struct store_job *job, struct dirent ***names, struct error *e)
{
    char folder[PATH_MAX];

    *names = NULL;
    if ((size_t)snprintf(folder, sizeof folder, "%s/checkpoints", job->run_dir) >= sizeof folder)
        return 0;
    return checkpoint_list(folder, names, e);
}

static int checkpoints_get_job(const struct request *q, struct store_job *job, struct error *e)
{
    int status = store_job_get(q->app->store, q->id, job, e);

    if (status == 0 && (status = run_dir_check(q->app->store, job, e)))
        store_job_clear(job);
    return status;
}

int handle_checkpoints(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;
    struct dirent **names;

    if (checkpoints_get_job(q, &job, e))
        return -(int)e->code;
    int count = checkpoints_list_of(&job, &names, e);
    if (count < 0) {
        store_job_clear(&job);
        return count;
    }
    json_t *list = json_array(), *best = NULL;
    for (int i = 0; i < count; i++) {
        int64_t step = 0;
        checkpoint_step(names[i]->d_name, &step);
        json_array_append_new(list, checkpoint_to_json(job.run_dir, step, &best));
    }
    json_decref(best);
    checkpoint_list_free(names, count);
    store_job_clear(&job);
    return reply_json(r, 200, json_pack("{s:o}", "checkpoints", list), e);
}

static int checkpoints_no_such_step(const struct request *q, const struct store_job *job,
                                    const char *text, struct error *e)
{
    char steps[200] = "";
    struct dirent **names;
    int count = checkpoints_list_of(job, &names, e);

    if (count < 0)
        return count;
    for (int i = 0; i < count; i++) {
        int64_t step = 0;
        size_t used = strlen(steps);
        checkpoint_step(names[i]->d_name, &step);
        snprintf(steps + used, sizeof steps - used, "%s%lld", i ? ", " : "", (long long)step);
    }
    checkpoint_list_free(names, count);
    return error_set(e, ERR_NOT_FOUND, "job %lld has no checkpoint of step %.20s; %s%s",
                     (long long)q->id, text,
                     count > 1    ? "it has those of the steps "
                     : count == 1 ? "it has that of step "
                                  : "it has none",
                     steps);
}

/* Opens the weights, or, if average is true and there are some, the averaged weights. The digest is
 * the entity tag; damaged files are rejected. */
static int checkpoints_open_model(const struct request *q, struct store_job *job, bool average,
                                  int *fd, char tag[DIGEST_BYTES + 2], struct error *e)
{
    const char *text = strrchr(q->path, '/') + 1, *name = CHECKPOINT_MODEL;
    size_t digits = strspn(text, "0123456789");

    if (text[digits] || digits == 0)
        return error_set(e, ERR_USAGE, "the step in %s must be a whole number", q->path);
    int64_t step = digits <= 18 ? strtoll(text, NULL, 10) : -1;
    struct stat unused;
    json_t *state = checkpoint_read_state(job->run_dir, step, &unused);
    int status = 0;
    if (average && checkpoints_digest_in(state, CHECKPOINT_EMA))
        name = CHECKPOINT_EMA;
    *fd = checkpoint_open(job->run_dir, step, name);
    if (*fd < 0) {
        status = checkpoints_no_such_step(q, job, text, e);
    } else if (checkpoints_is_as_written(state, name, *fd)) {
        snprintf(tag, DIGEST_BYTES + 2, "\"%s\"", checkpoints_digest_in(state, name));
    } else {
        close(*fd);
        status = error_set(
            e, ERR_CORRUPT,
            "the checkpoint of step %lld is damaged: its weights do not match their digest",
            (long long)step);
    }
    json_decref(state);
    return status;
}

/* Parses "bytes=FROM-", "bytes=FROM-TO" or "bytes=-LAST" (RFC 9110, 14.1.2). Returns false if the
 * header is to be ignored. */
static bool checkpoints_parse_range(const char *text, uint64_t size, uint64_t *from,
                                    uint64_t *bytes)
{
    char *end;

    if (!text || strncmp(text, "bytes=", 6) != 0 || strchr(text, ','))
        return false;
    text += 6;
    errno = 0;
    if (*text == '-') {
        unsigned long long last = strtoull(text + 1, &end, 10);
        *bytes = last < size ? last : size;
        *from = size - *bytes;
        return text[1] >= '0' && text[1] <= '9' && !*end;
    }
    unsigned long long first = strtoull(text, &end, 10), to = UINT64_MAX;
    if (end == text || *text < '0' || *text > '9' || *end != '-')
        return false;
    if (end[1])
        to = strtoull(end + 1, &end, 10);
    else
        end++;
    *from = first;
    *bytes = first >= size ? 0 : (to < size ? to : size - 1) - first + 1;
    return !*end && to >= first;
}

static void checkpoints_refuse_range(struct reply *r, uint64_t size, uint64_t from)
{
    struct error e;

    reply_header(r, "Content-Range", "bytes */%llu", (unsigned long long)size);
    error_set(&e, ERR_USAGE, "the file has %llu bytes, which does not reach byte %llu",
              (unsigned long long)size, (unsigned long long)from);
    reply_problem(r, 416, &e, NULL);
}

/* Takes ownership of fd. */
static int checkpoints_send_model(const struct request *q, struct reply *r, int fd, const char *tag,
                                  struct error *e)
{
    struct stat st;
    uint64_t from = 0, bytes;

    if (fstat(fd, &st) || st.st_size == 0) {
        close(fd);
        return error_set(e, ERR_IO, "cannot read the weights");
    }
    uint64_t size = (uint64_t)st.st_size;
    bool same = !q->if_range || strcmp(q->if_range, tag) == 0;
    reply_header(r, "ETag", "%s", tag);
    reply_header(r, "Accept-Ranges", "bytes");
    r->type = "application/octet-stream";
    if (q->if_none_match && strstr(q->if_none_match, tag)) {
        close(fd);
        return reply_text(r, 304, r->type, "", 0, e);
    }
    bool part = same && checkpoints_parse_range(q->range, size, &from, &bytes);
    if (part && bytes == 0) {
        close(fd);
        checkpoints_refuse_range(r, size, from);
        return 0;
    }
    if (!part) {
        from = 0;
        bytes = size;
    } else {
        reply_header(r, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)from,
                     (unsigned long long)(from + bytes - 1), (unsigned long long)size);
    }
    reply_file(r, part ? 206 : 200, r->type, fd, from, bytes);
    return 0;
}

/* Closes weights. */
static int checkpoints_send_onnx(const struct request *q, const struct store_job *job,
                                 struct safetensors *weights, struct reply *r, struct error *e)
{
    const struct job_spec *spec = store_job_document(job, e);
    int fd = spec ? run_file_nameless(q, "the ONNX model", e) : -(int)e->code;
    int status = fd < 0 ? fd : 0, copy = status ? -1 : dup(fd);
    FILE *out = copy < 0 ? NULL : must_alloc(fdopen(copy, "w"));
    struct stat st;

    if (!status && !out)
        status = error_set_errno(e, errno, "cannot write the ONNX model");
    if (out) {
        status = onnx_write(spec, job->id, weights, "the checkpoint", out, e);
        fclose(out);
    }
    safetensors_close(weights);
    if (!status && fstat(fd, &st))
        status = error_set_errno(e, errno, "cannot read the ONNX model");
    if (!status)
        reply_file(r, 200, "application/octet-stream", fd, 0, (uint64_t)st.st_size);
    else if (fd >= 0)
        close(fd);
    return status;
}

static const char *checkpoints_format(size_t i)
{
    static const char *const names[] = {"safetensors", "onnx", NULL};

    return names[i];
}

int handle_checkpoint(const struct request *q, struct reply *r, struct error *e)
{
    struct store_job job;
    struct safetensors *weights;
    char tag[DIGEST_BYTES + 2];
    size_t format = 0;
    int fd = -1;

    if (request_query_word(q, "format", checkpoints_format, &format, e) ||
        checkpoints_get_job(q, &job, e))
        return -(int)e->code;
    int status = checkpoints_open_model(q, &job, format, &fd, tag, e);
    if (status == 0)
        reply_header(r, "Content-Disposition", "attachment; filename=\"job-%lld-step-%s.%s\"",
                     (long long)q->id, strrchr(q->path, '/') + 1, checkpoints_format(format));
    if (status == 0 && !format)
        status = checkpoints_send_model(q, r, fd, tag, e);
    else if (status == 0 && !(status = safetensors_open_fd(fd, "the weights", &weights, e)))
        status = checkpoints_send_onnx(q, &job, weights, r, e);
    store_job_clear(&job);
    return status;
}
