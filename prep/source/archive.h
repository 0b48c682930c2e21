/* Tar archives, read with libarchive: an index of a plain tar, or the content of some members. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct archive_member {
    char *name;             /* without folders */
    uint64_t offset, bytes; /* position and size of the content in the file */
};

struct archive_index {
    struct archive_member *members; /* regular files, in the order of the archive */
    size_t count, capacity;
};

/* Indexes the plain tar in the bytes [offset, offset + bytes) of the file mapped at map; reads only
 * headers. A tar within a tar is indexed by another call. name: for messages. Returns ERR_CORRUPT
 * if it is not a tar or is truncated (a tar ends with a block of zeros). */
int archive_index(const uint8_t *map, uint64_t offset, uint64_t bytes, const char *name,
                  struct archive_index *index, struct error *e);
void archive_index_free(struct archive_index *index);

struct archive_blob {
    const char *name; /* name of the wanted member, without folders */
    char *data; /* NULL: not found; followed by a NUL that `bytes` does not count; freed by the
                   caller */
    size_t bytes;
};

/* Fills blobs from a tar, which may be compressed, or from files in a folder; a missing one stays
 * NULL. Returns ERR_TOO_LARGE if one exceeds limit_bytes. */
int archive_pick(const char *path, struct archive_blob *blobs, size_t count, size_t limit_bytes,
                 struct error *e);
void archive_blobs_free(struct archive_blob *blobs, size_t count);
