/*
 * Bytes that grow, up to a limit which every buffer has. Initialise with BUFFER(limit_bytes).
 *
 * What does not fit leaves the buffer as it is and makes it fail for good, so that a writer of many
 * parts may ask once, at the end. array_grow and arrays_grow are the same for the items of arrays.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/xalloc.h"

struct buffer {
    char *data;   /* owned; NUL-terminated behind its bytes; NULL while there are none */
    size_t bytes; /* without the NUL */
    size_t room;
    size_t limit; /* of bytes */
    bool failed;  /* over the limit, or without memory */
};

#define BUFFER(limit_bytes) ((struct buffer){.limit = (limit_bytes)})

/* Makes room for so many bytes more and the NUL; false: the buffer has failed. */
bool buffer_reserve(struct buffer *b, size_t more);

/* false: the buffer has failed. */
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

/* Removes the first bytes. */
void buffer_drop(struct buffer *b, size_t bytes);

/* The text, which is the caller's to free, "" where nothing was added; the buffer is as new. NULL:
 * it has failed (what it held is freed), or there is no memory. bytes may be NULL. */
char *buffer_take(struct buffer *b, size_t *bytes);

/* Frees what it holds; it is as new, with its limit. */
void buffer_clear(struct buffer *b);

/* Room for so many items in all in an array of *room items: the array, which may have moved, or
 * NULL without memory, when the old one is as it was. item_bytes: sizeof *items. */
void *array_reserve(void *items, size_t wanted, size_t *room, size_t item_bytes);

/* The same for one more. */
static inline void *array_grow(void *items, size_t count, size_t *room, size_t item_bytes)
{
    return count < *room ? items : array_reserve(items, count + 1, room, item_bytes);
}

/* The new last item of an array, count and room of which are variables; ends the program without
 * memory (xalloc.h): for what is small. */
#define array_add(items, count, room)                                                              \
    (*((items) = must_alloc(array_grow((items), (count), &(room), sizeof *(items))),               \
       &(items)[(count)++]))

/* The same for arrays that have one count and one room. */
struct array {
    void *at; /* where the pointer to its items is */
    size_t item_bytes;
};

#define ARRAY(items) ((struct array){&(items), sizeof *(items)})

/* false: without memory; the arrays are the caller's as before. */
bool arrays_grow(const struct array *arrays, size_t n, size_t count, size_t *room);
