/* Tar archives, by libarchive: an index of a plain tar, or the content of some members. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct archive_member {
    char *name;             /* without folders */
    uint64_t offset, bytes; /* of the content, in the file */
};

struct archive_index {
    struct archive_member *members; /* regular files, in the archive's order */
    size_t count, room;
};

/* Indexes the plain tar in bytes [offset, offset + bytes) of the file mapped at map, touching only
 * headers. A tar within a tar is indexed by a second call. name: for messages. ERR_CORRUPT: not a
 * tar, or truncated (a tar ends with a block of zeros). */
int archive_index(const uint8_t *map, uint64_t offset, uint64_t bytes, const char *name,
                  struct archive_index *index, struct error *e);
void archive_index_free(struct archive_index *index);

struct archive_blob {
    const char *name; /* wanted: a member's name without folders */
    char *data;       /* NULL: not there; NUL-terminated behind bytes; the caller frees it */
    size_t bytes;
};

/* Fills blobs from a tar (also compressed) or from files in a folder; a missing one stays NULL.
 * ERR_TOO_LARGE over limit_bytes. */
int archive_pick(const char *path, struct archive_blob *blobs, size_t count, size_t limit_bytes,
                 struct error *e);
void archive_blobs_free(struct archive_blob *blobs, size_t count);
