/* What a handler answers: a status, a body and a few headers, before any HTTP library sees it. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/problem.h"
#include "daemon/http/json_text.h"

#define REPLY_HEADERS_MAX 10

/* Zero-initialise; a status of 0 is none yet. */
struct stream; /* stream.h */

struct reply {
    int status;
    const char *type; /* content type, a literal */
    char *body;       /* owned; NULL: none, or a file */
    size_t bytes;
    int fd; /* with file_bytes > 0: the body is this part of a file; owned */
    uint64_t file_from, file_bytes;
    int64_t token;         /* that was sent: the file's sending ends with it; 0: none */
    struct stream *stream; /* the body is this stream of events; owned */
    struct {
        const char *name; /* a literal */
        char value[160];
    } headers[REPLY_HEADERS_MAX];
    int header_count;
};

void reply_header(struct reply *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Steals the reference. Returns 0, or ERR_NO_MEMORY. */
int reply_json(struct reply *r, int status, json_t *value, struct error *e);

/* Takes the text's bytes over. Returns 0, or ERR_NO_MEMORY where it failed. */
int reply_json_text(struct reply *r, int status, struct json_text *text, struct error *e);

/* Copies the text. */
int reply_text(struct reply *r, int status, const char *type, const void *text, size_t bytes,
               struct error *e);

/* So many bytes of a file, at least one, from this one on; takes over fd. */
void reply_file(struct reply *r, int status, const char *type, int fd, uint64_t from,
                uint64_t bytes);

/* An RFC 9457 problem: type and title of the code, its usual status unless status says otherwise
 * (0: the usual), the words as detail, and the problems of a document (NULL: none). Headers that
 * were set stay. Never fails: without memory it answers with an empty body. */
void reply_problem(struct reply *r, int status, const struct error *e,
                   const struct problems *problems);

/* 422 with the problems of a document (at least one); returns 0. */
int reply_refusal(struct reply *r, enum error_code code, const struct problems *problems);

void reply_clear(struct reply *r); /* the body; headers stay */
