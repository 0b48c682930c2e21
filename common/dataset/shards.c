#include "common/dataset/shards.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/dataset/tfrecord.h"
#include "common/system/content.h"
#include "common/system/open_beneath.h"
#include "common/xalloc.h"

#define OTHER_DESCRIPTORS 256 /* reserved for the rest of the process */

struct shards {
    const struct dataset_list *list;
    uint32_t keep;   /* number of files, the first ones, that stay open */
    atomic_int *fds; /* (keep); -1: not open yet */
};

static uint32_t shards_descriptors_for(size_t count)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 0;
    rlim_t wanted = limit.rlim_cur + count;
    if (limit.rlim_cur < 2 * count + OTHER_DESCRIPTORS && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= count + OTHER_DESCRIPTORS)
        return (uint32_t)count;
    return (uint32_t)(limit.rlim_cur / 4);
}

struct shards *shards_create(const struct dataset_list *list)
{
    struct shards *s = xcalloc(1, sizeof *s);

    s->list = list;
    s->keep = shards_descriptors_for(list->count);
    s->fds = xcalloc(s->keep + 1, sizeof *s->fds);
    for (uint32_t i = 0; i < s->keep; i++)
        atomic_init(&s->fds[i], -1);
    return s;
}

void shards_destroy(struct shards *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->keep; i++)
        if (atomic_load(&s->fds[i]) >= 0)
            close(atomic_load(&s->fds[i]));
    free(s->fds);
    free(s);
}

static int shard_borrow(struct shards *s, uint32_t file, struct error *e)
{
    int none = -1, fd = file < s->keep ? atomic_load(&s->fds[file]) : -1;

    if (fd >= 0)
        return fd;
    fd = open_beneath_file(s->list->files[file], e);
    if (fd < 0 || file >= s->keep)
        return fd;
    /* Disable read-ahead, because access is random. */
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    if (atomic_compare_exchange_strong(&s->fds[file], &none, fd))
        return fd;
    close(fd);
    return none; /* opened by another thread in the meantime */
}

static void shard_release(const struct shards *s, uint32_t file, int fd)
{
    if (file >= s->keep)
        close(fd);
}

static int shard_read_bytes(int fd, const char *name, uint8_t *to, uint64_t bytes, uint64_t offset,
                            struct error *e)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, to + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(e, errno, "cannot read %s at byte %" PRIu64, name,
                                   offset + done);
        if (n == 0)
            return error_set(e, ERR_CORRUPT,
                             "%s is truncated: it ends at byte %" PRIu64 ", inside the record at "
                             "byte %" PRIu64,
                             name, offset + done, offset);
        done += (uint64_t)n;
    }
    return 0;
}

static int shard_walk(int fd, const char *name, uint64_t file_bytes, uint64_t **lengths,
                      uint64_t *count, struct error *e)
{
    uint64_t offset = 0;
    size_t capacity = 0;
    uint8_t header[TFRECORD_HEADER_BYTES];

    while (offset < file_bytes) {
        uint64_t left = file_bytes - offset;
        uint64_t *larger = array_grow(*lengths, *count, &capacity, sizeof *larger);
        if (!larger)
            return error_set(e, ERR_NO_MEMORY, "no memory for an index of %s", name);
        *lengths = larger;
        int rc = shard_read_bytes(fd, name, header, left < sizeof header ? left : sizeof header,
                                  offset, e);
        if (rc == 0)
            rc = tfrecord_frame(header, file_bytes, name, offset, *lengths + *count, e);
        if (rc)
            return rc;
        offset += TFRECORD_HEADER_BYTES + (*lengths)[*count] + TFRECORD_FOOTER_BYTES;
        ++*count;
    }
    return 0;
}

int shards_walk(struct dataset_list *list, uint32_t file, uint64_t **lengths, uint64_t *count,
                struct error *e)
{
    const char *name = list->files[file];
    struct stat st;
    int rc, fd = open_beneath_file(name, e);

    *lengths = NULL;
    *count = 0;
    if (fd < 0)
        return fd;
    /* Disable read-ahead, because only a few bytes of each record are read. */
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    if (fstat(fd, &st))
        rc = error_set_errno(e, errno, "cannot access %s", name);
    else {
        list->bytes[file] = (uint64_t)st.st_size;
        rc = shard_walk(fd, name, list->bytes[file], lengths, count, e);
        if (rc == -ERR_CORRUPT && *count == 0)
            rc = content_explain_fd(fd, name, "a TFRecord file", e);
    }
    close(fd);
    if (rc) {
        free(*lengths);
        *lengths = NULL;
    }
    return rc;
}

/* A changed time alone is accepted: files are touched to protect them from scratch cleaners. */
static int shards_check_unchanged(const struct shards *s, uint32_t file, int fd, struct error *e)
{
    const char *name = s->list->files[file];
    struct stat st;

    if (fstat(fd, &st))
        return error_set_errno(e, errno, "cannot access %s", name);
    if (st.st_nlink == 0)
        return error_set(e, ERR_NOT_FOUND, "%s was removed or replaced while it is in use", name);
    if ((uint64_t)st.st_size != s->list->bytes[file])
        return error_set(e, ERR_CORRUPT,
                         "%s changed while it is in use: it had %" PRIu64
                         " bytes when it was opened and has %lld now",
                         name, s->list->bytes[file], (long long)st.st_size);
    return 0;
}

static int shards_read_frame(struct shards *s, const struct dataset_entry *entry, int fd,
                             uint8_t *frame, struct error *e)
{
    const char *name = s->list->files[entry->file];
    uint64_t length, bytes = TFRECORD_HEADER_BYTES + entry->bytes + TFRECORD_FOOTER_BYTES;
    int rc = shards_check_unchanged(s, entry->file, fd, e);

    if (rc == 0)
        rc = shard_read_bytes(fd, name, frame, bytes, entry->offset, e);
    if (rc == 0)
        rc = tfrecord_frame(frame, s->list->bytes[entry->file], name, entry->offset, &length, e);
    if (rc)
        return rc;
    if (length != entry->bytes)
        return error_set(e, ERR_CORRUPT,
                         "%s changed while it is in use: the record at byte %" PRIu64
                         " has %" PRIu64 " bytes instead of %" PRIu64,
                         name, entry->offset, length, entry->bytes);
    return tfrecord_check(frame + TFRECORD_HEADER_BYTES, length, name, entry->offset, e);
}

int shards_read(struct shards *s, const struct dataset_entry *entry, uint8_t **frame,
                struct error *e)
{
    uint64_t bytes = TFRECORD_HEADER_BYTES + entry->bytes + TFRECORD_FOOTER_BYTES;
    int fd = shard_borrow(s, entry->file, e);

    *frame = NULL;
    if (fd < 0)
        return fd;
    *frame = malloc(bytes);
    int rc =
        *frame ? shards_read_frame(s, entry, fd, *frame, e)
               : error_set(e, ERR_NO_MEMORY, "no memory for a record of %" PRIu64 " bytes", bytes);
    shard_release(s, entry->file, fd);
    if (rc) {
        free(*frame);
        *frame = NULL;
    }
    return rc;
}

void shards_expect(struct shards *s, const struct dataset_entry *entry)
{
    struct error e;
    int fd = entry->file < s->keep ? shard_borrow(s, entry->file, &e) : -1;

    if (fd >= 0)
        posix_fadvise(fd, (off_t)entry->offset,
                      (off_t)(TFRECORD_HEADER_BYTES + entry->bytes + TFRECORD_FOOTER_BYTES),
                      POSIX_FADV_WILLNEED);
}
