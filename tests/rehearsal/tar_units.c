#include "tests/rehearsal/tar_units.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"

#define BLOCK_BYTES 512
#define END_BYTES   (2 * (size_t)BLOCK_BYTES)
#define MADE_AT     1340000000 /* June 2012: the same bytes whenever they are made */

/* ---- tars in memory */

static la_ssize_t take_bytes(struct archive *a, void *out, const void *data, size_t bytes)
{
    if (buffer_append(out, data, bytes))
        return (la_ssize_t)bytes;
    archive_set_error(a, ENOMEM, "no memory for a tar");
    return -1;
}

struct archive *tar_begin(struct buffer *out)
{
    struct archive *a = archive_write_new();

    if (!a)
        return NULL;
    archive_write_set_format_ustar(a);
    archive_write_set_bytes_per_block(a, 0);
    archive_write_set_bytes_in_last_block(a, 1);
    if (archive_write_open(a, out, NULL, take_bytes, NULL) == ARCHIVE_OK)
        return a;
    archive_write_free(a);
    return NULL;
}

int tar_add(struct archive *a, const char *name, const void *data, size_t bytes, struct error *e)
{
    struct archive_entry *entry = archive_entry_new();
    int rc = 0;

    if (!entry)
        return error_set(e, ERR_NO_MEMORY, "no memory for a tar");
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_mtime(entry, MADE_AT, 0);
    archive_entry_set_size(entry, (la_int64_t)bytes);
    if (archive_write_header(a, entry) != ARCHIVE_OK ||
        archive_write_data(a, data, bytes) != (la_ssize_t)bytes)
        rc = error_set(e, ERR_IO, "%s cannot be put into a tar: %s", name, archive_error_string(a));
    archive_entry_free(entry);
    return rc;
}

int tar_end(struct archive *a, struct buffer *out, bool with_end, struct error *e)
{
    int status = archive_write_close(a), rc = 0;

    if (status != ARCHIVE_OK)
        rc = error_set(e, ERR_IO, "a tar cannot be ended: %s", archive_error_string(a));
    else if (!with_end)
        out->bytes -= END_BYTES;
    archive_write_free(a);
    return rc;
}

/* ---- the file */

/* The next member's end in the file, or 0: there is none, or it is cut off. */
static uint64_t member_end(struct archive *a, uint64_t file_bytes)
{
    struct archive_entry *entry;

    if (archive_read_next_header(a, &entry) != ARCHIVE_OK)
        return 0;
    uint64_t size = (uint64_t)archive_entry_size(entry);
    uint64_t end = (uint64_t)archive_read_header_position(a) + BLOCK_BYTES +
                   (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    return end <= file_bytes ? end : 0;
}

/* Counts the units that are whole; returns where the last of them ends. */
static uint64_t count_whole(struct tar_units *t, struct archive *a, uint64_t file_bytes,
                            int64_t (*members)(void *context, int64_t k), void *context)
{
    uint64_t whole = 0, end = 0;

    for (; t->next < t->units; t->next++) {
        for (int64_t left = members(context, t->next); left > 0; left--)
            if (!(end = member_end(a, file_bytes)))
                return whole;
        whole = end;
    }
    return whole;
}

static int take_over(struct tar_units *t, const char *part,
                     int64_t (*members)(void *context, int64_t k), void *context, struct error *e)
{
    struct archive *a = archive_read_new();
    struct stat st;

    if (!a)
        return error_set(e, ERR_NO_MEMORY, "no memory to read %s", part);
    archive_read_support_format_tar(a);
    uint64_t whole = 0;
    if (fstat(t->fd, &st) == 0 && st.st_size > 0 &&
        archive_read_open_filename(a, part, 1 << 20) == ARCHIVE_OK)
        whole = count_whole(t, a, (uint64_t)st.st_size, members, context);
    archive_read_free(a);
    if (ftruncate(t->fd, (off_t)whole) || lseek(t->fd, (off_t)whole, SEEK_SET) < 0)
        return error_set_errno(e, errno, "cannot go on with %s", part);
    return 0;
}

int tar_units_open(struct tar_units *t, const char *path, int64_t units,
                   int64_t (*members)(void *context, int64_t k), void *context, struct error *e)
{
    char part[PATH_MAX];

    *t = (struct tar_units){.fd = -1, .units = units};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->turn, NULL);
    snprintf(t->path, sizeof t->path, "%.4000s", path);
    snprintf(part, sizeof part, "%.4000s.part", path);
    if (access(path, F_OK) == 0) {
        t->next = units;
        return 0;
    }
    t->fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (t->fd < 0)
        return error_set_errno(e, errno, "cannot write %s", part);
    return take_over(t, part, members, context, e);
}

int tar_units_put(struct tar_units *t, int64_t k, const struct buffer *unit, struct error *e)
{
    int rc = 0;

    pthread_mutex_lock(&t->lock);
    while (t->next != k && !t->failed)
        pthread_cond_wait(&t->turn, &t->lock);
    if (t->failed)
        rc = error_set(e, ERR_INTERRUPTED, "interrupted");
    int errnum = rc ? 0 : file_write_all(t->fd, unit->data, unit->bytes);
    if (errnum)
        rc = error_set_errno(e, errnum, "cannot write %s.part", t->path);
    t->next += rc == 0;
    t->failed |= rc != 0;
    pthread_cond_broadcast(&t->turn);
    pthread_mutex_unlock(&t->lock);
    return rc;
}

void tar_units_fail(struct tar_units *t)
{
    pthread_mutex_lock(&t->lock);
    t->failed = true;
    pthread_cond_broadcast(&t->turn);
    pthread_mutex_unlock(&t->lock);
}

/* The end's zeros, the disk, the name. */
static int settle(struct tar_units *t, struct error *e)
{
    static const char zeros[END_BYTES];
    char part[PATH_MAX];

    snprintf(part, sizeof part, "%.4000s.part", t->path);
    int errnum = file_write_all(t->fd, zeros, sizeof zeros);
    if (errnum == 0 && (fsync(t->fd) || rename(part, t->path)))
        errnum = errno;
    if (errnum)
        return error_set_errno(e, errnum, "cannot finish %s", part);
    file_sync_dir_of(t->path);
    return 0;
}

int tar_units_close(struct tar_units *t, struct error *e)
{
    int rc = t->fd >= 0 && t->next == t->units && !t->failed ? settle(t, e) : 0;

    if (t->fd >= 0)
        close(t->fd);
    pthread_cond_destroy(&t->turn);
    pthread_mutex_destroy(&t->lock);
    return rc;
}
