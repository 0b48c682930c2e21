/* What a file is by its first bytes, for messages about one that is not what was expected, and the
 * byte order mark that editors put in front of a text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define CONTENT_HEAD_BYTES 512 /* as many as all kinds need */
#define CONTENT_PNG        "a PNG image"

struct content {
    const char *what;   /* "a gzip file" */
    const char *advice; /* "decompress it with gzip -d"; NULL: none */
    bool compressed;
};

/* NULL: not known. */
const struct content *content_of(const void *head, size_t bytes);

/* *e says why the file is no `wanted` ("a TFRecord file"); where its content is known, *e says that
 * instead, with the same code. Returns -e->code. */
int content_explain(const char *path, const void *head, size_t bytes, const char *wanted,
                    struct error *e);

/* The same of an open file, whose offset stays where it is. */
int content_explain_fd(int fd, const char *path, const char *wanted, struct error *e);

/* Takes UTF-8's byte order mark off the beginning of a text; ERR_USAGE for UTF-16 and UTF-32. */
int content_skip_mark(const char **text, size_t *bytes, struct error *e);

/* The same in place, of a text of *bytes bytes and a NUL. */
int content_drop_mark(char *text, size_t *bytes, struct error *e);
