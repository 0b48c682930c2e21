#include "prep/source/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "common/xalloc.h"

#define BLOCK_BYTES 512

static const char *archive_member_name(struct archive_entry *entry)
{
    const char *path = archive_entry_pathname(entry);
    return path ? file_base_name(path) : "";
}

/* Computes the offset of the content from libarchive's pointer: for an archive in memory libarchive
 * returns a pointer into that memory, not a copy. */
static int archive_locate(struct archive *a, struct archive_entry *entry, const uint8_t *map,
                          uint64_t last, const char *name, uint64_t *offset, uint64_t *bytes,
                          struct error *e)
{
    const void *data = NULL;
    size_t got = 0;
    la_int64_t skipped = 0;
    const char *member = archive_entry_pathname(entry);

    *bytes = (uint64_t)archive_entry_size(entry);
    *offset = 0;
    if (*bytes == 0)
        return 0;
    int rc = archive_read_data_block(a, &data, &got, &skipped);
    *offset = (uint64_t)((const uint8_t *)data - map);
    if (rc != ARCHIVE_OK || *offset >= last || *bytes > last - *offset)
        return error_set(e, ERR_CORRUPT,
                         "%s is truncated: %s in it should be %" PRIu64 " bytes long", name,
                         member ? member : "a file", *bytes);
    if (skipped)
        return error_set(e, ERR_UNSUPPORTED, "%s: %s is a sparse file, which is not supported",
                         name, member);
    return 0;
}

static int archive_check_end(const uint8_t *map, uint64_t end, uint64_t last, const char *name,
                             struct error *e)
{
    static const uint8_t zeros[BLOCK_BYTES];

    if (end <= last && last - end >= BLOCK_BYTES && memcmp(map + end, zeros, BLOCK_BYTES) == 0)
        return 0;
    return error_set(e, ERR_CORRUPT, "%s is truncated: the end-of-archive marker is missing", name);
}

static int archive_index_members(struct archive *a, const uint8_t *map, uint64_t first,
                                 uint64_t last, const char *name, struct archive_index *index,
                                 struct error *e)
{
    struct archive_entry *entry;
    uint64_t offset, bytes, end = first;
    int status, rc = 0;

    while (rc == 0 && ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK ||
                       status == ARCHIVE_WARN)) {
        if (archive_entry_filetype(entry) != AE_IFREG)
            continue;
        rc = archive_locate(a, entry, map, last, name, &offset, &bytes, e);
        if (rc == 0)
            array_add(index->members, index->count, index->capacity) =
                (struct archive_member){xstrdup(archive_member_name(entry)), offset, bytes};
        if (bytes)
            end = offset + (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    }
    if (rc == 0 && status != ARCHIVE_EOF)
        return error_set(e, ERR_CORRUPT, "%s cannot be read as a plain tar: %s", name,
                         archive_error_string(a));
    return rc || end == first ? rc : archive_check_end(map, end, last, name, e);
}

int archive_index(const uint8_t *map, uint64_t offset, uint64_t bytes, const char *name,
                  struct archive_index *index, struct error *e)
{
    struct archive *a = must_alloc(archive_read_new());

    *index = (struct archive_index){0};
    archive_read_support_format_tar(a);
    int rc = 0;
    if (archive_read_open_memory(a, map + offset, bytes) != ARCHIVE_OK)
        rc = error_set(e, ERR_CORRUPT, "%s cannot be read as a plain tar: %s", name,
                       archive_error_string(a));
    if (rc == 0)
        rc = archive_index_members(a, map, offset, offset + bytes, name, index, e);
    if (rc && index->count == 0)
        rc = content_explain(name, map + offset, bytes, "a tar archive", e);
    archive_read_free(a);
    return rc;
}

void archive_index_free(struct archive_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->members[i].name);
    free(index->members);
    *index = (struct archive_index){0};
}

static int archive_read_blob(struct archive *a, struct archive_entry *entry, const char *path,
                             size_t limit_bytes, struct archive_blob *blob, struct error *e)
{
    la_int64_t bytes = archive_entry_size(entry);

    if (bytes < 0 || (uint64_t)bytes > limit_bytes)
        return error_set(e, ERR_TOO_LARGE, "%s: %s in it is over %zu bytes", path, blob->name,
                         limit_bytes);
    free(blob->data);
    blob->bytes = (size_t)bytes;
    blob->data = malloc(blob->bytes + 1);
    if (!blob->data)
        return error_set(e, ERR_NO_MEMORY, "no memory for %s of %s", blob->name, path);
    la_ssize_t got = archive_read_data(a, blob->data, blob->bytes);
    if (got < 0 || (size_t)got < blob->bytes)
        return error_set(e, ERR_CORRUPT, "%s is truncated or corrupt in %s: %s", path, blob->name,
                         got < 0 ? archive_error_string(a) : "its content ends too early");
    blob->data[blob->bytes] = '\0';
    return 0;
}

static int archive_pick_members(struct archive *a, const char *path, struct archive_blob *blobs,
                                size_t count, size_t limit_bytes, struct error *e)
{
    struct archive_entry *entry;
    int status, rc = 0;

    while (rc == 0 &&
           ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK || status == ARCHIVE_WARN))
        for (size_t i = 0; i < count && rc == 0; i++)
            if (strcmp(archive_member_name(entry), blobs[i].name) == 0)
                rc = archive_read_blob(a, entry, path, limit_bytes, &blobs[i], e);
    if (rc == 0 && status != ARCHIVE_EOF)
        rc = error_set(e, ERR_CORRUPT, "%s is truncated, corrupt or not a tar archive: %s", path,
                       archive_error_string(a));
    return rc;
}

static int archive_explain_file(const char *path, struct error *e)
{
    struct error unseen;
    int fd = file_open(path, &unseen), rc = -(int)e->code;

    if (fd >= 0) {
        rc = content_explain_fd(fd, path, "a tar archive", e);
        close(fd);
    }
    return rc;
}

static int archive_pick_from_archive(const char *path, struct archive_blob *blobs, size_t count,
                                     size_t limit_bytes, struct error *e)
{
    struct archive *a = must_alloc(archive_read_new());
    int rc = 0;

    archive_read_support_format_tar(a);
    archive_read_support_filter_all(a);
    if (archive_read_open_filename(a, path, 1 << 20) != ARCHIVE_OK)
        rc = error_set(e, ERR_CORRUPT, "%s cannot be read as a tar: %s", path,
                       archive_error_string(a));
    if (rc == 0)
        rc = archive_pick_members(a, path, blobs, count, limit_bytes, e);
    if (rc && archive_file_count(a) == 0 && archive_filter_code(a, 0) == ARCHIVE_FILTER_NONE)
        rc = archive_explain_file(path, e);
    archive_read_free(a);
    return rc;
}

int archive_pick(const char *path, struct archive_blob *blobs, size_t count, size_t limit_bytes,
                 struct error *e)
{
    char file[PATH_MAX];
    struct stat st;
    int rc = 0;

    for (size_t i = 0; i < count; i++)
        blobs[i].data = NULL;
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return archive_pick_from_archive(path, blobs, count, limit_bytes, e);
    for (size_t i = 0; i < count && rc == 0; i++) {
        file_path(file, NULL, "%s/%s", path, blobs[i].name);
        if (access(file, F_OK) == 0)
            rc = file_read(file, limit_bytes, &blobs[i].data, &blobs[i].bytes, e);
    }
    return rc;
}

void archive_blobs_free(struct archive_blob *blobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(blobs[i].data);
        blobs[i].data = NULL;
    }
}
