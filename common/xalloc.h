/* Allocations that cannot fail, for small things: documents, names, lists of rows. Without memory
 * the program prints one line and exits with status 1. Nothing is left half stored: the database
 * rolls back, and trainings run on without their daemon. Buffers above 1 MiB, request bodies and
 * sizes chosen by a client are checked instead. */
#pragma once

#include <stddef.h>

/* Returns memory; aborts if it is NULL. For functions that return NULL only without memory:
 * json_dumps, open_memstream, buffer_take. */
void *must_alloc(void *memory) __attribute__((returns_nonnull));

void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t bytes) __attribute__((malloc, returns_nonnull));
char *xstrdup_or_null(const char *text) __attribute__((malloc));
char *xasprintf(const char *format, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
