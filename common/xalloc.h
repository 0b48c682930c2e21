/*
 * Allocations that cannot fail: for small things such as documents, names and lists of rows.
 * Without memory the program writes one line to stderr and exits with status 1. Nothing is left
 * half stored: the database rolls an open transaction back, and trainings run on without their
 * daemon. Buffers above 1 MiB, request bodies and what a client sizes are allocated with a check.
 */
#pragma once

#include <stddef.h>

/* memory itself, unless it is NULL: for functions that return NULL only without memory, as
 * json_pack, json_dumps, open_memstream and buffer_take may. */
void *must_alloc(void *memory) __attribute__((returns_nonnull));

/* As the functions of the C library. The caller frees the result. */
void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t bytes) __attribute__((malloc, returns_nonnull));
char *xstrdup_or_null(const char *text) __attribute__((malloc)); /* NULL of NULL */
char *xasprintf(const char *format, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
