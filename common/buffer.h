/*
 * A byte buffer that grows up to a limit. Initialise it with BUFFER(limit_bytes).
 *
 * An append that does not fit leaves the content unchanged and sets `failed`; all later appends
 * fail too. So a function that appends many parts may check once at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/xalloc.h"

struct buffer {
    char *data;   /* owned, NUL-terminated; NULL while empty */
    size_t bytes; /* without the terminating NUL */
    size_t capacity;
    size_t limit;
    bool failed; /* the limit was exceeded, or memory ran out */
};

#define BUFFER(limit_bytes) ((struct buffer){.limit = (limit_bytes)})

/* Ensures capacity for `more` bytes and the NUL. Returns false if the buffer has failed. */
bool buffer_reserve(struct buffer *b, size_t more);

static inline bool buffer_append(struct buffer *b, const void *data, size_t bytes)
{
    if (b->failed || (b->capacity - b->bytes <= bytes && !buffer_reserve(b, bytes)))
        return false;
    if (bytes)
        memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
    b->data[b->bytes] = '\0';
    return true;
}

bool buffer_printf(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

void buffer_drop(struct buffer *b, size_t bytes);

/* Returns the content ("" if empty), which the caller frees, and resets the buffer. Returns NULL if
 * the buffer has failed or memory runs out. bytes may be NULL. */
char *buffer_take(struct buffer *b, size_t *bytes);

/* Frees the content and resets the buffer; the limit stays. */
void buffer_clear(struct buffer *b);

/* Grows an array of *capacity items to hold `wanted` items in total. Returns the array, which
 * may have moved, or NULL if out of memory; the old array is then unchanged. item_bytes:
 * sizeof *items. */
void *array_reserve(void *items, size_t wanted, size_t *capacity, size_t item_bytes);

static inline void *array_grow(void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    return count < *capacity ? items : array_reserve(items, count + 1, capacity, item_bytes);
}

/* Appends an item to a small array and yields it as an lvalue; count and capacity are variables. */
#define array_add(items, count, capacity)                                                          \
    (*((items) = must_alloc(array_grow((items), (count), &(capacity), sizeof *(items))),           \
       &(items)[(count)++]))

struct array {
    void *at;
    size_t item_bytes;
};

#define ARRAY(items) ((struct array){&(items), sizeof *(items)})

/* Returns false if out of memory; the content of the arrays is then unchanged. */
bool arrays_grow(const struct array *arrays, size_t n, size_t count, size_t *capacity);
