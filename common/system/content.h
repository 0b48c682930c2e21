/* Recognises file types, for messages about unexpected files, and byte order marks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define CONTENT_HEAD_BYTES 512 /* sufficient for all types */
#define CONTENT_PNG        "a PNG image"

struct content {
    const char *what;   /* for example "a gzip file" */
    const char *advice; /* for example "decompress it with gzip -d"; NULL: none */
    bool compressed;
};

const struct content *content_of(const void *head, size_t bytes);

/* Sets the message of *e to say that the file is not a `wanted` ("a TFRecord file"), with its
 * actual type if known. Keeps the code and returns -e->code. */
int content_explain(const char *path, const void *head, size_t bytes, const char *wanted,
                    struct error *e);

int content_explain_fd(int fd, const char *path, const char *wanted, struct error *e);

/* Skips UTF-8's byte order mark. Returns ERR_USAGE for UTF-16 and UTF-32. */
int content_skip_mark(const char **text, size_t *bytes, struct error *e);

/* Like content_skip_mark, but removes the mark from a NUL-terminated text. */
int content_drop_mark(char *text, size_t *bytes, struct error *e);
