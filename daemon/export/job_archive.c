#include "daemon/export/job_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/xalloc.h"

#define PIECE_BYTES ((size_t)256 * 1024)

static int job_archive_add(struct job_archive_files *files, struct job_archive_file file,
                           const char *name, struct error *e)
{
    file.name = xstrdup(name);
    array_add(files->items, files->count, files->capacity) =
        file; /* libarchive takes ownership even on failure */
    return files->count <= JOB_ARCHIVE_FILES
               ? 0
               : error_set(e, ERR_TOO_LARGE, "the run has more than %d files", JOB_ARCHIVE_FILES);
}

int job_archive_add_text(struct job_archive_files *files, const char *name, const char *text,
                         struct error *e)
{
    struct job_archive_file file = {.fd = -1, .text = xstrdup(text)};

    file.bytes = strlen(text);
    digest_text(text, file.bytes, file.hex);
    return job_archive_add(files, file, name, e);
}

/* Returns 0 with *got, or an errno. */
static int job_archive_read_piece(int fd, char *piece, uint64_t from, size_t wanted, ssize_t *got)
{
    do
        *got = pread(fd, piece, wanted, (off_t)from);
    while (*got < 0 && errno == EINTR);
    return *got < 0 ? errno : 0;
}

static int job_archive_digest_fd(int fd, uint64_t bytes, char hex[DIGEST_BYTES])
{
    char *piece = xmalloc(PIECE_BYTES);
    struct digest *d = must_alloc(digest_begin());
    int failed = 0;
    ssize_t got = 0;

    for (uint64_t at = 0; !failed && at < bytes; at += (uint64_t)got) {
        size_t wanted = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
        failed = job_archive_read_piece(fd, piece, at, wanted, &got);
        if (!failed && got == 0)
            failed = EIO; /* it has been truncated */
        if (!failed)
            digest_add(d, piece, (size_t)got);
    }
    digest_end(d, hex);
    free(piece);
    return failed;
}

static int job_archive_measure(struct job_archive_file *file, const char *name, int fd,
                               struct error *e)
{
    struct stat st;
    int failed = fstat(fd, &st) ? errno : 0;

    file->bytes = failed ? 0 : (uint64_t)st.st_size;
    if (!failed)
        failed = job_archive_digest_fd(fd, file->bytes, file->hex);
    return failed ? error_set_errno(e, failed, "cannot read %s", name) : 0;
}

int job_archive_add_fd(struct job_archive_files *files, const char *name, int fd, struct error *e)
{
    struct job_archive_file file = {.fd = fd};
    int status = job_archive_measure(&file, name, fd, e);

    if (!status)
        return job_archive_add(files, file, name, e);
    close(fd);
    return status;
}

int job_archive_add_file(struct job_archive_files *files, const char *name, int fd, struct error *e)
{
    struct job_archive_file file = {.fd = -1};
    int status = job_archive_measure(&file, name, fd, e);

    close(fd);
    return status ? status : job_archive_add(files, file, name, e);
}

void job_archive_files_clear(struct job_archive_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].name);
        free(files->items[i].text);
        if (files->items[i].fd >= 0)
            close(files->items[i].fd);
    }
    free(files->items);
    *files = (struct job_archive_files){0};
}

static int job_archive_failed(struct archive *a, const char *name, struct error *e)
{
    int reason = archive_errno(a);
    const char *words = archive_error_string(a);

    return error_set_errno(e, reason > 0 ? reason : EIO, "cannot write %s into the archive (%s)",
                           name, words ? words : "libarchive gives no reason");
}

static int job_archive_write_header(struct archive *a, const char *name, uint64_t bytes,
                                    int64_t mtime, struct error *e)
{
    struct archive_entry *entry = must_alloc(archive_entry_new());

    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, (la_int64_t)bytes);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_mtime(entry, mtime, 0);
    int status = archive_write_header(a, entry) == ARCHIVE_OK ? 0 : job_archive_failed(a, name, e);
    archive_entry_free(entry);
    return status;
}

static int job_archive_write_data(struct archive *a, const char *name, const void *data,
                                  size_t bytes, struct error *e)
{
    return archive_write_data(a, data, bytes) == (la_ssize_t)bytes ? 0
                                                                   : job_archive_failed(a, name, e);
}

static int job_archive_changed(const struct job_archive_file *f, struct error *e)
{
    return error_set(e, ERR_CONFLICT, "%s has changed while it was exported; try again", f->name);
}

static int job_archive_write_fd(struct archive *a, const struct job_archive_file *f, int fd,
                                struct error *e)
{
    char *piece = xmalloc(PIECE_BYTES), hex[DIGEST_BYTES];
    struct digest *d = must_alloc(digest_begin());
    ssize_t got = 0;
    int status = 0;

    for (uint64_t at = 0; !status && at < f->bytes; at += (uint64_t)got) {
        size_t wanted = f->bytes - at < PIECE_BYTES ? (size_t)(f->bytes - at) : PIECE_BYTES;
        int failed = job_archive_read_piece(fd, piece, at, wanted, &got);
        if (failed || got == 0) {
            status = failed ? error_set_errno(e, failed, "cannot read %s", f->name)
                            : job_archive_changed(f, e);
        } else {
            digest_add(d, piece, (size_t)got);
            status = job_archive_write_data(a, f->name, piece, (size_t)got, e);
        }
    }
    digest_end(d, hex);
    free(piece);
    return status || strcmp(hex, f->hex) == 0 ? status : job_archive_changed(f, e);
}

/* Leaves out bytes appended since the file was added. */
static int job_archive_write_file(struct archive *a, const struct job_archive_files *files,
                                  const struct job_archive_file *f, struct error *e)
{
    int fd = f->fd >= 0 ? f->fd : files->open(files->folder, f->name);

    if (fd < 0)
        return errno == ENOENT ? job_archive_changed(f, e)
                               : error_set_errno(e, errno, "cannot reopen %s", f->name);
    int status = job_archive_write_fd(a, f, fd, e);
    if (f->fd < 0)
        close(fd);
    return status;
}

static int job_archive_write_member(struct archive *a, const struct job_archive_files *files,
                                    const struct job_archive_file *f, int64_t mtime,
                                    struct error *e)
{
    int status = job_archive_write_header(a, f->name, f->bytes, mtime, e);

    if (status || f->bytes == 0)
        return status;
    return f->text ? job_archive_write_data(a, f->name, f->text, f->bytes, e)
                   : job_archive_write_file(a, files, f, e);
}

static char *job_archive_manifest(const struct job_archive_files *files, json_t *manifest)
{
    json_t *list = json_array();

    for (size_t i = 0; i < files->count; i++) {
        const struct job_archive_file *f = &files->items[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "name", f->name, "bytes",
                                              (json_int_t)f->bytes, "xxh128", f->hex));
    }
    json_object_set_new(manifest, "files", list);
    return must_alloc(json_dumps(manifest, JSON_INDENT(1) | JSON_REAL_PRECISION(17)));
}

/* Writes no time into gzip's header, so that the same job gives the same bytes. */
static int job_archive_open(struct archive *a, int out, struct error *e)
{
    if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
        archive_write_add_filter_gzip(a) != ARCHIVE_OK ||
        archive_write_set_filter_option(a, "gzip", "timestamp", NULL) != ARCHIVE_OK ||
        archive_write_set_filter_option(a, "gzip", "compression-level", "1") != ARCHIVE_OK ||
        archive_write_open_fd(a, out) != ARCHIVE_OK)
        return job_archive_failed(a, "the first bytes", e);
    return 0;
}

int job_archive_write(const struct job_archive_files *files, json_t *manifest, int64_t mtime,
                      int out, struct error *e)
{
    struct archive *a = must_alloc(archive_write_new());
    char *text = job_archive_manifest(files, manifest);
    int status =
        job_archive_open(a, out, e) ||
                job_archive_write_header(a, JOB_ARCHIVE_MANIFEST, strlen(text), mtime, e) ||
                job_archive_write_data(a, JOB_ARCHIVE_MANIFEST, text, strlen(text), e)
            ? -(int)e->code
            : 0;

    for (size_t i = 0; !status && i < files->count; i++)
        status = job_archive_write_member(a, files, &files->items[i], mtime, e);
    if (!status && archive_write_close(a) != ARCHIVE_OK)
        status = job_archive_failed(a, "its end", e);
    archive_write_free(a);
    free(text);
    return status;
}
