/* Reads a file that another process appends to, by complete lines, and tracks the position after
 * those consumed. Independent of the lines' content. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define TAIL_CHUNK_BYTES (256 * 1024) /* read size, and maximum line length */

struct tail;

/* The file may not exist yet. */
struct tail *tail_create(const char *path, int64_t position_bytes);
void tail_destroy(struct tail *t); /* NULL-safe */

/* Complete lines, each terminated by a NUL in place of its newline; valid until the next call. */
struct tail_chunk {
    int64_t from_bytes, to_bytes; /* offsets in the file, including newlines */
    char *text;                   /* to_bytes - from_bytes bytes: "line\0line\0" */
    size_t bytes;
    bool overlong; /* part of a line longer than TAIL_CHUNK_BYTES */
};

/* Returns 1 with a chunk, 0 if there is no complete line after the position, or a negative error.
 * Returns the same chunk until tail_advance is called. If the file is shorter than the position,
 * returns 0 and sets *truncated once. */
int tail_read(struct tail *t, struct tail_chunk *chunk, bool *truncated, struct error *e);
void tail_advance(struct tail *t, int64_t position_bytes);
int64_t tail_position(const struct tail *t);
