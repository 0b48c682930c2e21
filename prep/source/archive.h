/* Tar archives, read by libarchive: where their members lie, and what small ones hold. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* ---- where the members of a plain tar lie in their file, so that any can be read by offset */

struct archive_member {
    char *name;             /* without folders */
    uint64_t offset, bytes; /* of the content, in the file */
};

struct archive_index {
    struct archive_member *members; /* regular files, in the archive's order */
    size_t count, room;
};

/* Indexes the tar that is bytes [offset, offset + bytes) of a file in memory: map is the start of
 * the file, of which only the members' headers are touched. A tar within a tar is indexed by a
 * second call with its member's offset and bytes. name: for messages. ERR_CORRUPT: no tar, or a
 * truncated one (a tar ends with a block of zeros). */
int archive_index(const uint8_t *map, uint64_t offset, uint64_t bytes, const char *name,
                  struct archive_index *index, struct error *e);
void archive_index_free(struct archive_index *index);

/* ---- what some members hold */

struct archive_blob {
    const char *name; /* wanted: a member's name without folders */
    char *data;       /* NULL: not there; NUL-terminated behind bytes; the caller frees it */
    size_t bytes;
};

/* Fills the blobs from a tar, plain or compressed, or from a folder that holds the files
 * themselves. Those over limit_bytes are refused with ERR_TOO_LARGE. What is missing stays NULL. */
int archive_pick(const char *path, struct archive_blob *blobs, size_t count, size_t limit_bytes,
                 struct error *e);
void archive_blobs_free(struct archive_blob *blobs, size_t count);
