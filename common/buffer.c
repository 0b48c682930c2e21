#include "common/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_BYTES 4096u
#define FIRST_ITEMS 64u

bool buffer_reserve(struct buffer *b, size_t more)
{
    if (b->failed || more > b->limit || b->bytes > b->limit - more) {
        b->failed = true;
        return false;
    }
    size_t needed = b->bytes + more + 1, capacity = b->capacity ? b->capacity : FIRST_BYTES;
    while (capacity < needed && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (capacity > b->limit + 1 && b->limit < SIZE_MAX)
        capacity = b->limit + 1;
    char *larger = capacity > b->capacity ? realloc(b->data, capacity) : b->data;
    if (!larger) {
        b->failed = true;
        return false;
    }
    b->data = larger;
    b->capacity = capacity;
    return true;
}

bool buffer_printf(struct buffer *b, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int bytes = vsnprintf(NULL, 0, format, args);
    bool fits = bytes >= 0 && buffer_reserve(b, (size_t)bytes);
    if (fits) {
        vsnprintf(b->data + b->bytes, (size_t)bytes + 1, format, again);
        b->bytes += (size_t)bytes;
    } else {
        b->failed = true;
    }
    va_end(again);
    va_end(args);
    return fits;
}

void buffer_drop(struct buffer *b, size_t bytes)
{
    if (!b->data)
        return;
    b->bytes -= bytes;
    memmove(b->data, b->data + bytes, b->bytes + 1);
}

char *buffer_take(struct buffer *b, size_t *bytes)
{
    char *text = b->failed ? NULL : b->data ? b->data : calloc(1, 1);

    if (bytes)
        *bytes = b->bytes;
    if (text == b->data)
        b->data = NULL;
    buffer_clear(b);
    return text;
}

void buffer_clear(struct buffer *b)
{
    free(b->data);
    *b = BUFFER(b->limit);
}

void *array_reserve(void *items, size_t wanted, size_t *capacity, size_t item_bytes)
{
    size_t more = *capacity ? *capacity : FIRST_ITEMS, bytes;

    if (items && wanted <= *capacity)
        return items;
    while (more < wanted && more <= SIZE_MAX / 2)
        more *= 2;
    if (more < wanted || __builtin_mul_overflow(more, item_bytes, &bytes))
        return NULL;
    void *larger = realloc(items, bytes);
    if (larger)
        *capacity = more;
    return larger;
}

bool arrays_grow(const struct array *arrays, size_t n, size_t count, size_t *capacity)
{
    size_t more = *capacity;

    for (size_t i = 0; i < n; i++) {
        void *items;
        more = *capacity;
        memcpy(&items, arrays[i].at, sizeof items);
        items = array_grow(items, count, &more, arrays[i].item_bytes);
        if (!items)
            return false; /* the arrays before it have grown, but *capacity stays */
        memcpy(arrays[i].at, &items, sizeof items);
    }
    *capacity = more;
    return true;
}
