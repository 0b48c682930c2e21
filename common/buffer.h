/*
 * Bytes that grow up to a limit. Initialise with BUFFER(limit_bytes).
 *
 * An append that does not fit leaves the buffer unchanged and fails it for good, so that a writer
 * of many parts may check once at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/xalloc.h"

struct buffer {
    char *data;   /* owned, NUL-terminated; NULL while empty */
    size_t bytes; /* without the NUL */
    size_t room;
    size_t limit;
    bool failed; /* over the limit, or out of memory */
};

#define BUFFER(limit_bytes) ((struct buffer){.limit = (limit_bytes)})

/* Makes room for so many more bytes and the NUL. False: the buffer has failed. */
bool buffer_reserve(struct buffer *b, size_t more);

static inline bool buffer_append(struct buffer *b, const void *data, size_t bytes)
{
    if (b->failed || (b->room - b->bytes <= bytes && !buffer_reserve(b, bytes)))
        return false;
    if (bytes)
        memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
    b->data[b->bytes] = '\0';
    return true;
}

bool buffer_printf(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

void buffer_drop(struct buffer *b, size_t bytes);

/* Takes the text, which the caller frees ("" if empty), and resets the buffer. NULL: it has failed,
 * or there is no memory. bytes may be NULL. */
char *buffer_take(struct buffer *b, size_t *bytes);

/* Frees the content and resets the buffer, with its limit. */
void buffer_clear(struct buffer *b);

/* Grows an array of *room items to hold `wanted` in total. Returns it, perhaps moved; NULL without
 * memory, with the old one unchanged. item_bytes: sizeof *items. */
void *array_reserve(void *items, size_t wanted, size_t *room, size_t item_bytes);

static inline void *array_grow(void *items, size_t count, size_t *room, size_t item_bytes)
{
    return count < *room ? items : array_reserve(items, count + 1, room, item_bytes);
}

/* The new last item of a small array; count and room are variables. Aborts without memory. */
#define array_add(items, count, room)                                                              \
    (*((items) = must_alloc(array_grow((items), (count), &(room), sizeof *(items))),               \
       &(items)[(count)++]))

/* For arrays that share one count and one room. */
struct array {
    void *at;
    size_t item_bytes;
};

#define ARRAY(items) ((struct array){&(items), sizeof *(items)})

/* False: no memory; the arrays are unchanged. */
bool arrays_grow(const struct array *arrays, size_t n, size_t count, size_t *room);
