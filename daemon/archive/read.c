#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/text/printable.h"
#include "common/system/file.h"
#include "daemon/archive/job_archive.h"

#define BLOCK_BYTES          ((size_t)64 * 1024)
#define MANIFEST_LIMIT_BYTES ((size_t)4 << 20)

struct reading {
    struct archive *a;
    const char *folder;
    uint64_t left;  /* bytes that may still come */
    json_t *files;  /* of the manifest, by name: {"bytes", "xxh128"}; taken out as they come */
    char shown[80]; /* the member's name, printable */
};

static int read_failed(struct reading *r, struct error *e)
{
    const char *words = archive_error_string(r->a);
    char shown[200];

    printable_escape(shown, sizeof shown, words ? words : "", words ? strnlen(words, 150) : 0, "");
    return error_set(e, ERR_INVALID, "this is no archive of a job, or it is damaged%s%s",
                     *shown ? ": " : "", shown);
}

/* The next member's name; NULL: there is none (*status 0), or it failed. */
static const char *next_member(struct reading *r, struct archive_entry **entry, int *status,
                               struct error *e)
{
    int found = archive_read_next_header(r->a, entry);

    *status = 0;
    if (found == ARCHIVE_EOF)
        return NULL;
    if (found != ARCHIVE_OK) {
        *status = read_failed(r, e);
        return NULL;
    }
    const char *name = archive_entry_pathname(*entry);
    printable_escape(r->shown, sizeof r->shown, name ? name : "", name ? strnlen(name, 70) : 0, "");
    if (name && archive_entry_filetype(*entry) == AE_IFREG && !archive_entry_hardlink(*entry) &&
        !archive_entry_symlink(*entry))
        return name;
    *status = error_set(e, ERR_INVALID,
                        "the archive holds \"%s\", which is no regular file: an archive of a job "
                        "holds nothing else",
                        r->shown);
    return NULL;
}

/* *got 0: its end. */
static int next_block(struct reading *r, char *block, size_t *got, struct error *e)
{
    la_ssize_t bytes = archive_read_data(r->a, block, BLOCK_BYTES);

    *got = bytes > 0 ? (size_t)bytes : 0;
    if (bytes < 0)
        return read_failed(r, e);
    if (*got > r->left)
        return error_set(e, ERR_TOO_LARGE,
                         "what the archive holds is larger than this daemon takes "
                         "(max_import_bytes in traind.conf)");
    r->left -= *got;
    return 0;
}

/* ---- the manifest */

static bool is_digest(const char *hex)
{
    return hex && strlen(hex) == DIGEST_BYTES - 1 &&
           strspn(hex, "0123456789abcdef") == DIGEST_BYTES - 1;
}

static int read_file_list(struct reading *r, const json_t *manifest, struct error *e)
{
    const json_t *list = json_object_get(manifest, "files"), *file;
    json_int_t format = json_get_integer(manifest, "format", 0);
    size_t i;

    if (format != JOB_ARCHIVE_FORMAT)
        return error_set(e, ERR_INVALID,
                         "the archive has format %lld, and this version takes %d: it was written "
                         "by traind %.40s",
                         (long long)format, JOB_ARCHIVE_FORMAT,
                         json_get_text(manifest, "version", "of another kind"));
    if (!json_is_array(list) || json_array_size(list) > JOB_ARCHIVE_FILES)
        return error_set(e, ERR_INVALID, "the archive's manifest lists no files, or too many");
    r->files = json_object();
    json_array_foreach (list, i, file) {
        const char *name = json_get_text(file, "name", "");
        if (!job_archive_takes(name) || json_object_get(r->files, name) ||
            json_get_integer(file, "bytes", -1) < 0 ||
            !is_digest(json_get_text(file, "xxh128", NULL)))
            return error_set(e, ERR_INVALID,
                             "file %zu of the archive's manifest is none of a job's, is there "
                             "twice, or has no bytes and xxh128",
                             i + 1);
        json_object_set(r->files, name, (json_t *)file);
    }
    return 0;
}

static int read_manifest(struct reading *r, json_t **manifest, char hex[DIGEST_BYTES],
                         struct error *e)
{
    struct buffer text = BUFFER(MANIFEST_LIMIT_BYTES);
    char *block = malloc(BLOCK_BYTES);
    struct archive_entry *entry;
    size_t got = 1;
    int status = block ? 0 : error_set(e, ERR_NO_MEMORY, "no memory to read an archive");
    const char *name = status ? NULL : next_member(r, &entry, &status, e);

    if (!status && (!name || strcmp(name, JOB_ARCHIVE_MANIFEST) != 0))
        status =
            error_set(e, ERR_INVALID, "this is no archive of a job: it does not begin with its %s",
                      JOB_ARCHIVE_MANIFEST);
    while (!status && got && !(status = next_block(r, block, &got, e)))
        buffer_append(&text, block, got);
    free(block);
    if (!status && text.failed)
        status = error_set(e, ERR_INVALID, "the archive's manifest is too long");
    if (!status) {
        digest_text(text.data ? text.data : "", text.bytes, hex);
        *manifest = json_document_parse(text.data ? text.data : "", text.bytes, e);
        status = *manifest ? read_file_list(r, *manifest, e)
                           : error_set(e, ERR_INVALID, "the archive's manifest: %s", e->text);
    }
    buffer_clear(&text);
    return status;
}

/* ---- the files */

/* In a folder that nobody else writes to, by a name of the table. */
static int make_file(struct reading *r, const char *name, int *fd, struct error *e)
{
    char path[PATH_MAX];
    int status = 0;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", r->folder, name) >= sizeof path)
        return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
    char *slash = strrchr(path, '/');
    *slash = '\0';
    status = file_make_dirs(path, e);
    *slash = '/';
    if (status)
        return status;
    *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return *fd < 0 ? error_set_errno(e, errno, "cannot create %s", path) : 0;
}

static int copy_member(struct reading *r, int fd, uint64_t *bytes, char hex[DIGEST_BYTES],
                       struct error *e)
{
    char *block = malloc(BLOCK_BYTES);
    struct digest *d = block ? digest_begin() : NULL;
    int status = d ? 0 : error_set(e, ERR_NO_MEMORY, "no memory to read an archive");
    size_t got = 1;

    *bytes = 0;
    while (!status && got && !(status = next_block(r, block, &got, e))) {
        int failed = file_write_all(fd, block, got);
        if (failed)
            status = error_set_errno(e, failed, "cannot write %s", r->shown);
        digest_add(d, block, got);
        *bytes += got;
    }
    digest_end(d, hex);
    free(block);
    return status;
}

static int read_member(struct reading *r, const char *name, struct error *e)
{
    json_t *file = json_object_get(r->files, name);
    char hex[DIGEST_BYTES], *own = strdup(name);
    uint64_t bytes;
    int fd = -1, status = 0;

    if (!file)
        status = error_set(e, ERR_INVALID,
                           "the archive holds \"%s\", which its manifest does not list, or twice",
                           r->shown);
    if (!status)
        status = own ? make_file(r, own, &fd, e) : error_set(e, ERR_NO_MEMORY, "no memory");
    if (!status)
        status = copy_member(r, fd, &bytes, hex, e);
    if (fd >= 0 && close(fd) && !status)
        status = error_set_errno(e, errno, "cannot write %s", r->shown);
    if (!status && (bytes != (uint64_t)json_get_integer(file, "bytes", -1) ||
                    strcmp(hex, json_get_text(file, "xxh128", "")) != 0))
        status =
            error_set(e, ERR_INVALID,
                      "the archive is damaged: \"%s\" is not what its manifest says", r->shown);
    if (!status)
        json_object_del(r->files, own);
    free(own);
    return status;
}

static int read_members(struct reading *r, struct error *e)
{
    struct archive_entry *entry;
    const char *name;
    int status;

    while ((name = next_member(r, &entry, &status, e)))
        if ((status = read_member(r, name, e)))
            return status;
    return status;
}

int job_archive_read(int in, const char *folder, uint64_t limit_bytes, json_t **manifest,
                     char hex[DIGEST_BYTES], struct error *e)
{
    struct reading r = {.a = archive_read_new(), .folder = folder, .left = limit_bytes};
    int status = r.a ? 0 : error_set(e, ERR_NO_MEMORY, "no memory to read an archive");

    *manifest = NULL;
    if (!status && (archive_read_support_filter_gzip(r.a) != ARCHIVE_OK ||
                    archive_read_support_format_tar(r.a) != ARCHIVE_OK ||
                    archive_read_open_fd(r.a, in, BLOCK_BYTES) != ARCHIVE_OK))
        status = read_failed(&r, e);
    if (!status)
        status = read_manifest(&r, manifest, hex, e);
    if (!status)
        status = read_members(&r, e);
    if (!status && json_object_size(r.files))
        status = error_set(e, ERR_INVALID,
                           "the archive is cut off: \"%s\", which its manifest lists, is missing",
                           json_object_iter_key(json_object_iter(r.files)));
    if (status) {
        json_decref(*manifest);
        *manifest = NULL;
    }
    json_decref(r.files);
    archive_read_free(r.a);
    return status;
}
