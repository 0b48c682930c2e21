/*
 * Follows a file that another process appends lines to. Knows nothing of events: it hands out whole
 * lines and the position behind them. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define FOLLOW_CHUNK_BYTES (256 * 1024) /* read at once; also the longest line */

struct follow;

/* The file need not be there yet. */
int follow_create(const char *path, int64_t position_bytes, struct follow **out, struct error *e);
void follow_destroy(struct follow *f); /* NULL is fine */

/* Whole lines, NUL-terminated in place of their newline; they live until the next call. */
struct follow_chunk {
    int64_t from_bytes, to_bytes; /* of the file, newlines included */
    char *text;                   /* to_bytes - from_bytes bytes: "line\0line\0" */
    size_t bytes;
    bool overlong; /* not a line but a piece of one that is longer than FOLLOW_CHUNK_BYTES */
};

/* 1: a chunk; 0: no whole line beyond the position (a torn last line waits); negative: error. Does
 * not move: the same chunk comes again until follow_advance. A file that became shorter than the
 * position gives nothing (*truncated is true, once). */
int follow_read(struct follow *f, struct follow_chunk *chunk, bool *truncated, struct error *e);
void follow_advance(struct follow *f, int64_t position_bytes);
int64_t follow_position(const struct follow *f);
