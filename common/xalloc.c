#include "common/xalloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *must_alloc(void *memory)
{
    if (memory)
        return memory;
    dprintf(STDERR_FILENO, "%s: out of memory\n", program_invocation_short_name);
    _exit(EXIT_FAILURE);
}

void *xmalloc(size_t bytes)
{
    return must_alloc(malloc(bytes));
}

void *xcalloc(size_t count, size_t bytes)
{
    return must_alloc(calloc(count, bytes));
}

char *xstrdup(const char *text)
{
    return must_alloc(strdup(text));
}

char *xstrndup(const char *text, size_t bytes)
{
    return must_alloc(strndup(text, bytes));
}

char *xstrdup_or_null(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    return must_alloc(length < 0 ? NULL : text);
}
