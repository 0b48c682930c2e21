/* Allocations that cannot fail, for small things: documents, names, lists of rows. If memory runs
 * out, the program prints a line and exits with status 1. Stored data stays consistent: the
 * database rolls back, and trainings continue without their daemon. Buffers over 1 MiB, request
 * bodies and sizes chosen by a client must be checked instead. */
#pragma once

#include <stddef.h>

/* Returns memory, or exits if it is NULL. For functions that return NULL only if out of memory:
 * json_dumps, open_memstream, buffer_take. */
void *must_alloc(void *memory) __attribute__((returns_nonnull));

void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t bytes) __attribute__((malloc, returns_nonnull));
char *xstrdup_or_null(const char *text) __attribute__((malloc));
char *xasprintf(const char *format, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
