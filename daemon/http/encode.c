#include "daemon/http/encode.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>
#include <zlib.h>

#define SMALLEST_BYTES 1024 /* below it gzip gains less than its headers cost */

static bool encode_has_header(const struct reply *r, const char *name)
{
    for (int i = 0; i < r->header_count; i++)
        if (strcmp(r->headers[i].name, name) == 0)
            return true;
    return false;
}

void encode_tag(struct reply *r, const char *if_none_match)
{
    char tag[48];

    if (encode_has_header(r, "ETag"))
        return;
    XXH128_hash_t hash = XXH3_128bits(r->body, r->bytes);
    /* Weak: a compressed answer has the same one. */
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

/* "gzip" or "*" among "br, gzip;q=0.8", and not with q=0. */
static bool encode_takes_gzip(const char *accept)
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

static bool encode_deflate_body(struct reply *r, char *to, size_t room, size_t *bytes)
{
    z_stream z = {.next_in = (unsigned char *)r->body,
                  .avail_in = (unsigned)r->bytes,
                  .next_out = (unsigned char *)to,
                  .avail_out = (unsigned)room};

    /* 15 + 16: gzip's own head; level 1: a loopback or a LAN is quicker than zlib's best. */
    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    bool whole = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *bytes = z.total_out;
    deflateEnd(&z);
    return whole;
}

void encode_compress(struct reply *r, const char *accept_encoding)
{
    size_t bytes;

    if (r->bytes < SMALLEST_BYTES || r->bytes > UINT32_MAX || !encode_takes_gzip(accept_encoding) ||
        encode_has_header(r, "Content-Encoding"))
        return;
    char *packed = malloc(r->bytes);
    if (packed && encode_deflate_body(r, packed, r->bytes, &bytes)) {
        free(r->body);
        r->body = packed;
        r->bytes = bytes;
        reply_header(r, "Content-Encoding", "gzip");
        reply_header(r, "Vary", "Accept-Encoding");
    } else {
        free(packed);
    }
}
