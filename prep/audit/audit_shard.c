#include "prep/audit/audit_shard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "common/buffer.h"
#include "common/dataset/tf_example.h"
#include "common/dataset/tfrecord.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "prep/prep.h"

/* Larger than any image; limits the memory allocated for a corrupt length. */
#define RECORD_BYTES_MAX (1u << 30)

static const char *const statuses[] = {"ok", "warning", "problem"};

void audit_say(struct audit *a, const char *check, enum audit_status status, json_t *values,
               const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    json_t *text = json_vsprintf(format, arguments);
    va_end(arguments);
    json_array_append_new(a->checks, json_pack("{s:s, s:s, s:o, s:o}", "check", check, "status",
                                               statuses[status], "text",
                                               text ? text : json_string("(not UTF-8)"), "values",
                                               values ? values : json_object()));
}

void audit_find(struct audit *a, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES + 256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&a->lock);
    if (json_array_size(a->findings) < AUDIT_FINDINGS_MAX)
        json_array_append_new(a->findings, json_string(text));
    pthread_mutex_unlock(&a->lock);
}

struct walk {
    struct audit *audit;
    struct audit_reader *reader;
    struct audit_shard *shard;
    const char *path;
    int fd;
    uint32_t number;
    enum dataset_role role;
    struct digest *digest;
};

static int audit_shard_read_at(const char *path, int fd, void *out, size_t bytes, uint64_t offset,
                               struct error *e)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? error_set_errno(e, errno, "cannot read %s", path)
                           : error_set(e, ERR_CORRUPT, "%s has become shorter", path);
        done += (size_t)got;
    }
    return 0;
}

static int audit_reader_reserve(struct audit_reader *r, size_t bytes, struct error *e)
{
    if (bytes <= r->capacity)
        return 0;
    free(r->buffer);
    r->buffer = malloc(bytes);
    r->capacity = r->buffer ? bytes : 0;
    return r->buffer ? 0
                     : error_set(e, ERR_NO_MEMORY, "no memory for a record of %zu bytes", bytes);
}

static int audit_shard_add_record(struct audit_shard *s, const struct audit_record *record,
                                  struct error *e)
{
    struct audit_record *larger =
        array_grow(s->records, (size_t)s->count, &s->capacity, sizeof *larger);
    if (!larger)
        return error_set(e, ERR_NO_MEMORY, "no memory for a list of records");
    s->records = larger;
    s->records[s->count++] = *record;
    return 0;
}

static int audit_reader_decode(struct audit *a, struct audit_reader *r, const char *path,
                               uint64_t offset, const struct tf_example_view *view, struct error *e)
{
    struct jpeg_pixels pixels;
    int rc = jpeg_decode(r->decoder, view->jpeg, view->jpeg_bytes, &pixels, e);

    if (rc == -ERR_NO_MEMORY)
        return rc;
    if (rc)
        audit_find(a, "%s, record at byte %" PRIu64 " (%s): %s", path, offset, view->filename,
                   e->text);
    pthread_mutex_lock(&a->lock);
    a->decoded++;
    a->undecodable += rc != 0;
    pthread_mutex_unlock(&a->lock);
    return 0;
}

static unsigned audit_number(const uint8_t *p, int bytes, bool little)
{
    unsigned v = 0;

    for (int i = 0; i < bytes; i++)
        v |= (unsigned)p[i] << 8 * (little ? i : bytes - 1 - i);
    return v;
}

/* Returns the orientation (tag 0x112) in the first directory of a TIFF header, or 1. */
static unsigned audit_tiff_orientation(const uint8_t *tiff, size_t bytes)
{
    bool little = bytes > 8 && tiff[0] == 'I';
    size_t at = bytes > 8 ? audit_number(tiff + 4, 4, little) : bytes;
    unsigned entries = at + 2 <= bytes ? audit_number(tiff + at, 2, little) : 0;

    for (at += 2; entries > 0 && at + 12 <= bytes; entries--, at += 12)
        if (audit_number(tiff + at, 2, little) == 0x112)
            return audit_number(tiff + at + 8, 2, little);
    return 1;
}

/* Whether the Exif data of a JPEG (Exif 2.32, 4.5.4 and 4.6.5) say that the picture is to be turned
 * or mirrored. */
static bool audit_is_turned(const uint8_t *jpeg, size_t bytes)
{
    static const uint8_t exif[6] = "Exif\0";

    for (size_t at = 2; at + 10 <= bytes && jpeg[at] == 0xff && jpeg[at + 1] != 0xda;) {
        size_t length = audit_number(jpeg + at + 2, 2, false);
        if (length < 2 || at + 2 + length > bytes)
            return false;
        if (jpeg[at + 1] == 0xe1 && length > 8 && memcmp(jpeg + at + 4, exif, 6) == 0) {
            unsigned way = audit_tiff_orientation(jpeg + at + 10, length - 8);
            return way >= 2 && way <= 8;
        }
        at += 2 + length;
    }
    return false;
}

static void audit_note_turned(struct audit *a, const char *path, const struct tf_example_view *view)
{
    if (!audit_is_turned(view->jpeg, view->jpeg_bytes))
        return;
    pthread_mutex_lock(&a->lock);
    if (a->turned++ == 0)
        snprintf(a->first_turned, sizeof a->first_turned, "%s in %s", view->filename, path);
    pthread_mutex_unlock(&a->lock);
}

static int audit_shard_take_payload(struct walk *w, uint64_t offset, uint64_t bytes,
                                    struct error *e)
{
    const uint8_t *payload = w->reader->buffer;
    struct tf_example_view view;
    struct audit_record record = {.offset = offset, .bytes = bytes, .shard = w->number};

    int rc = tfrecord_check(payload, bytes, w->path, offset, e);
    if (rc == 0) {
        rc = tf_example_parse(payload, bytes, &view, e);
        if (rc)
            error_prefix(e, "%s, record at byte %" PRIu64, w->path, offset);
    }
    if (rc) {
        w->shard->damaged++;
        audit_find(w->audit, "%s", e->text);
        return 0;
    }
    audit_note_turned(w->audit, w->path, &view);
    XXH128_hash_t hash = XXH3_128bits(view.jpeg, view.jpeg_bytes);
    record.hash[0] = hash.low64;
    record.hash[1] = hash.high64;
    record.label = view.label >= 1 && view.label <= INT32_MAX ? (int32_t)(view.label - 1) : -1;
    if (record.label < 0)
        audit_find(w->audit,
                   "%s, record at byte %" PRIu64 " (%s): the label %" PRId64
                   " is no class: they count from 1",
                   w->path, offset, view.filename, view.label);
    rc = audit_shard_add_record(w->shard, &record, e);
    if (rc == 0 && w->audit->options->all)
        rc = audit_reader_decode(w->audit, w->reader, w->path, offset, &view, e);
    return rc;
}

/* Processes the next record. *done: end of file, or the next record cannot be located. */
static int audit_shard_take_record(struct walk *w, uint64_t *offset, bool *done, struct error *e)
{
    uint8_t header[TFRECORD_HEADER_BYTES];
    uint64_t left = w->shard->bytes - *offset, bytes = 0;

    size_t header_bytes = left < sizeof header ? (size_t)left : sizeof header;
    int rc = audit_shard_read_at(w->path, w->fd, header, header_bytes, *offset, e);
    if (rc == 0)
        rc = tfrecord_frame(header, w->shard->bytes, w->path, *offset, &bytes, e);
    if (rc == 0 && bytes > RECORD_BYTES_MAX)
        rc = error_set(e, ERR_CORRUPT,
                       "%s: the record at byte %" PRIu64 " has %" PRIu64
                       " bytes; an image has less than %u",
                       w->path, *offset, bytes, RECORD_BYTES_MAX);
    if (rc == 0 && audit_reader_reserve(w->reader, bytes + TFRECORD_FOOTER_BYTES, e))
        return -ERR_NO_MEMORY;
    if (rc == 0)
        rc = audit_shard_read_at(w->path, w->fd, w->reader->buffer, bytes + TFRECORD_FOOTER_BYTES,
                                 *offset + sizeof header, e);
    if (rc && *offset == 0)
        content_explain_fd(w->fd, w->path, "a TFRecord file", e);
    if (rc) { /* the start of the next record is unknown */
        w->shard->damaged++;
        audit_find(w->audit, "%s", e->text);
        *done = true;
        return 0;
    }
    digest_add(w->digest, header, sizeof header);
    digest_add(w->digest, w->reader->buffer, bytes + TFRECORD_FOOTER_BYTES);
    rc = audit_shard_take_payload(w, *offset, bytes, e);
    *offset += sizeof header + bytes + TFRECORD_FOOTER_BYTES;
    *done = *offset >= w->shard->bytes;
    progress_add(&w->audit->progress, 0, (int64_t)(sizeof header + bytes + TFRECORD_FOOTER_BYTES));
    return rc;
}

int audit_walk(struct audit *a, struct audit_reader *r, enum dataset_role role, uint32_t shard,
               struct error *e)
{
    struct audit_role *of = &a->roles[role];
    struct walk w = {a, r, &of->shards[shard], of->list.files[shard], -1, shard, role, NULL};
    uint64_t offset = 0;
    struct stat st;
    int rc = 0;

    w.fd = file_open(w.path, e);
    if (w.fd < 0 || fstat(w.fd, &st) || st.st_size == 0) {
        bool fine =
            w.fd >= 0 &&
            !a->has_manifest; /* writers leave an empty shard if they had no records for it */
        if (w.fd < 0)
            audit_find(a, "%s", e->text);
        else if (!fine)
            audit_find(a, "%s is empty", w.path);
        w.shard->damaged += !fine;
        if (w.fd >= 0)
            close(w.fd);
        return 0;
    }
    posix_fadvise(w.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    w.shard->bytes = (uint64_t)st.st_size;
    w.digest = digest_begin();
    for (bool done = false; !done && rc == 0;)
        rc = prep_interrupted ? error_set(e, ERR_INTERRUPTED, "interrupted")
                              : audit_shard_take_record(&w, &offset, &done, e);
    close(w.fd);
    digest_end(w.digest, w.shard->hash);
    if (offset != w.shard->bytes)
        *w.shard->hash = '\0';
    return rc;
}

int audit_decode(struct audit *a, struct audit_reader *r, enum dataset_role role,
                 const struct audit_record *record, struct error *e)
{
    const char *path = a->roles[role].list.files[record->shard];
    struct tf_example_view view;
    int fd = file_open(path, e);

    if (fd < 0)
        return fd;
    int rc = audit_reader_reserve(r, record->bytes, e);
    if (rc == 0)
        rc = audit_shard_read_at(path, fd, r->buffer, record->bytes,
                                 record->offset + TFRECORD_HEADER_BYTES, e);
    close(fd);
    if (rc == 0)
        rc = tf_example_parse(r->buffer, record->bytes, &view, e);
    return rc ? rc : audit_reader_decode(a, r, path, record->offset, &view, e);
}
