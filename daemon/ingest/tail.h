/*
 * Reads a file that another process appends to, in whole lines, and keeps the position after those
 * that were taken. Knows nothing of events. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define TAIL_CHUNK_BYTES (256 * 1024) /* read at once; also the longest line */

struct tail;

/* The file need not exist yet. */
struct tail *tail_create(const char *path, int64_t position_bytes);
void tail_destroy(struct tail *t); /* NULL is fine */

/* Whole lines, each with a NUL in place of its newline; valid until the next call. */
struct tail_chunk {
    int64_t from_bytes, to_bytes; /* of the file, newlines included */
    char *text;                   /* to_bytes - from_bytes bytes: "line\0line\0" */
    size_t bytes;
    bool overlong; /* a piece of a line longer than TAIL_CHUNK_BYTES, not a whole line */
};

/* Returns 1 with a chunk, 0 if there is no whole line after the position (an incomplete last line
 * is left), or a negative error. Returns the same chunk again until tail_advance. A file shorter
 * than the position yields nothing and sets *truncated, once. */
int tail_read(struct tail *t, struct tail_chunk *chunk, bool *truncated, struct error *e);
void tail_advance(struct tail *t, int64_t position_bytes);
int64_t tail_position(const struct tail *t);
