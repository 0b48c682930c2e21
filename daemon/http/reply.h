#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/problem.h"
#include "daemon/http/json_text.h"

#define REPLY_HEADERS_MAX 10

struct stream; /* stream.h */

/* Zero-initialise; status 0: not set yet. */
struct reply {
    int status;
    const char *type; /* content type, a literal */
    char *body;       /* owned; NULL: none, or a file */
    size_t bytes;
    int fd; /* if file_bytes > 0, the body is this part of a file; owned */
    uint64_t file_from, file_bytes;
    int64_t token; /* token of the request: the file is sent only while it is valid; 0: none */
    struct stream *stream; /* the body is this event stream; owned */
    struct {
        const char *name; /* a literal */
        char value[160];
    } headers[REPLY_HEADERS_MAX];
    int header_count;
};

/* Adds a header unless one of this name exists. */
void reply_header(struct reply *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Steals the reference. Returns 0, or ERR_NO_MEMORY. */
int reply_json(struct reply *r, int status, json_t *value, struct error *e);

/* Takes ownership of the text's buffer. Returns 0, or ERR_NO_MEMORY if writing the text failed. */
int reply_json_text(struct reply *r, int status, struct json_text *text, struct error *e);

/* Copies the text. Returns 0 or ERR_NO_MEMORY. */
int reply_text(struct reply *r, int status, const char *type, const void *text, size_t bytes,
               struct error *e);

/* Sends part of a file, at least one byte. Takes ownership of fd. */
void reply_file(struct reply *r, int status, const char *type, int fd, uint64_t from,
                uint64_t bytes);

/* Sends an RFC 9457 problem: type and title from the error's code, status (0: the code's default),
 * the error's text as detail, and the document's problems (NULL: none). Keeps headers set before.
 * Cannot fail: if memory runs out, the body is empty. */
void reply_problem(struct reply *r, int status, const struct error *e,
                   const struct problems *problems);

/* Sends a 422 with the document's problems, at least one. Returns 0. */
int reply_refusal(struct reply *r, enum error_code code, const struct problems *problems);

/* Adds an ETag (digest of the body) unless there is one. If if_none_match (NULL: not sent) contains
 * it, turns the response into a 304 without a body. */
void reply_add_etag(struct reply *r, const char *if_none_match);

/* Compresses a body of 1 KiB or more with gzip if accept_encoding (NULL: not sent) allows it. */
void reply_compress(struct reply *r, const char *accept_encoding);

void reply_clear(struct reply *r); /* frees the body; keeps the headers */
