#include "daemon/http/reply.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "common/json.h"
#include "daemon/http/stream/stream.h"

#define COMPRESS_FROM_BYTES 1024 /* for smaller bodies, gzip saves less than its headers cost */

static bool reply_has_header(const struct reply *r, const char *name)
{
    for (int i = 0; i < r->header_count; i++)
        if (strcmp(r->headers[i].name, name) == 0)
            return true;
    return false;
}

void reply_header(struct reply *r, const char *name, const char *format, ...)
{
    va_list args;

    if (reply_has_header(r, name) || r->header_count == REPLY_HEADERS_MAX)
        return;
    r->headers[r->header_count].name = name;
    va_start(args, format);
    vsnprintf(r->headers[r->header_count].value, sizeof r->headers[0].value, format, args);
    va_end(args);
    r->header_count++;
}

static void reply_set_body(struct reply *r, int status, const char *type, char *body, size_t bytes)
{
    r->status = status;
    r->type = type;
    r->body = body;
    r->bytes = bytes;
}

int reply_json(struct reply *r, int status, json_t *value, struct error *e)
{
    char *text = value ? json_to_text(value, JSON_COMPACT) : NULL;

    json_decref(value);
    if (!text)
        return error_set(e, ERR_NO_MEMORY, "out of memory for the answer");
    size_t bytes = strlen(text);
    text[bytes] = '\n'; /* replaces the NUL, which is not sent */
    reply_set_body(r, status, "application/json", text, bytes + 1);
    return 0;
}

int reply_json_text(struct reply *r, int status, struct json_text *text, struct error *e)
{
    if (!json_text_end(text)) {
        json_text_clear(text);
        return error_set(e, ERR_NO_MEMORY, "out of memory for the answer");
    }
    size_t bytes = text->out.bytes;
    reply_set_body(r, status, "application/json", buffer_take(&text->out, NULL), bytes);
    return 0;
}

int reply_text(struct reply *r, int status, const char *type, const void *text, size_t bytes,
               struct error *e)
{
    char *copy = malloc(bytes + 1);

    if (!copy)
        return error_set(e, ERR_NO_MEMORY, "out of memory for the answer");
    memcpy(copy, text, bytes);
    reply_set_body(r, status, type, copy, bytes);
    return 0;
}

void reply_file(struct reply *r, int status, const char *type, int fd, uint64_t from,
                uint64_t bytes)
{
    reply_set_body(r, status, type, NULL, 0);
    r->fd = fd;
    r->file_from = from;
    r->file_bytes = bytes;
}

void reply_problem(struct reply *r, int status, const struct error *e,
                   const struct problems *problems)
{
    const struct error_type *type = error_type(e->code);
    char uri[64];
    struct error ignored;

    reply_clear(r);
    if (status == 0)
        status = type->http_status;
    snprintf(uri, sizeof uri, "urn:traind:problem:%s", type->slug);
    json_t *body =
        json_pack("{s:s, s:s, s:i}", "type", uri, "title", type->title, "status", status);
    json_t *detail = json_string(e->text);
    if (!detail) /* the client's text is invalid UTF-8, or was cut within a character */
        detail = json_string("the request contains text that is not UTF-8, or too much text");
    json_object_set_new(body, "detail", detail);
    if (problems && problems->count)
        json_object_set_new(body, "errors", problems_to_json(problems));
    if (reply_json(r, status, body, &ignored))
        reply_set_body(r, status, NULL, NULL, 0);
    r->type = "application/problem+json";
}

void reply_clear(struct reply *r)
{
    free(r->body);
    if (r->file_bytes)
        close(r->fd);
    stream_close(r->stream);
    r->stream = NULL;
    r->body = NULL;
    r->bytes = 0;
    r->file_bytes = 0;
    r->status = 0;
}

int reply_refusal(struct reply *r, enum error_code code, const struct problems *problems)
{
    struct error e;
    const struct problem *first = &problems->items[0];
    char key[PROBLEM_KEY_BYTES];

    if (problems->count == 1)
        error_set(&e, code, "%s%s%s", *first->pointer ? problem_key(first->pointer, key) : "",
                  *first->pointer ? ": " : "", first->message);
    else
        error_set(&e, code, "the document has %zu problems, listed in \"errors\"", problems->count);
    reply_problem(r, 422, &e, problems);
    return 0;
}

void reply_add_etag(struct reply *r, const char *if_none_match)
{
    char tag[48];

    if (reply_has_header(r, "ETag"))
        return;
    XXH128_hash_t hash = XXH3_128bits(r->body, r->bytes);
    /* A weak tag, because the compressed response has the same one. */
    snprintf(tag, sizeof tag, "W/\"%016llx%016llx\"", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    reply_header(r, "ETag", "%s", tag);
    if (!if_none_match || !strstr(if_none_match, tag + 2))
        return;
    free(r->body);
    r->body = NULL;
    r->bytes = 0;
    r->status = 304;
}

/* Returns whether a list such as "br, gzip;q=0.8" includes "gzip" or "*" without q=0. */
static bool reply_accepts_gzip(const char *accept)
{
    for (const char *at = accept; at && *at; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t;,");
        bool named =
            (length == 4 && strncasecmp(at, "gzip", 4) == 0) || (length == 1 && *at == '*');
        const char *weight = at + length + strspn(at + length, " \t");
        double q = 1;
        if (*weight == ';')
            sscanf(weight + 1, " q=%lf", &q);
        if (named)
            return q > 0;
    }
    return false;
}

static bool reply_deflate(struct reply *r, char *to, size_t capacity, size_t *bytes)
{
    z_stream z = {.next_in = (unsigned char *)r->body,
                  .avail_in = (unsigned)r->bytes,
                  .next_out = (unsigned char *)to,
                  .avail_out = (unsigned)capacity};

    /* 15 + 16 selects the gzip format; level 1, because a LAN outpaces higher levels. */
    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    bool whole = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *bytes = z.total_out;
    deflateEnd(&z);
    return whole;
}

void reply_compress(struct reply *r, const char *accept_encoding)
{
    size_t bytes;

    if (r->bytes < COMPRESS_FROM_BYTES || r->bytes > UINT32_MAX ||
        !reply_accepts_gzip(accept_encoding) || reply_has_header(r, "Content-Encoding"))
        return;
    char *packed = malloc(r->bytes);
    if (packed && reply_deflate(r, packed, r->bytes, &bytes)) {
        free(r->body);
        r->body = packed;
        r->bytes = bytes;
        reply_header(r, "Content-Encoding", "gzip");
        reply_header(r, "Vary", "Accept-Encoding");
    } else {
        free(packed);
    }
}
