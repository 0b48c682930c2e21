/* Sends a notice as a POST of JSON with libcurl (doc/notices.md lists its headers). Checks
 * addresses when connecting; with a proxy, those that the name has here. Not thread-safe. */
#pragma once

#include <curl/curl.h>

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"

struct post_outcome {
    enum outbox_state state; /* OUTBOX_WAITING: worth retrying */
    double retry_after;      /* seconds requested by the receiver; 0: none */
    char words[1024];        /* what went wrong; "" if delivered */
};

struct post;

/* Borrows n and settings until post_destroy. Adding post_handle to a multi handle starts it. */
int post_create(const struct outbox_notice *n, const struct notice_settings *settings,
                struct post **out, struct error *e);
CURL *post_handle(struct post *p);

/* Call it when curl has finished. Returns false after a redirect: add the handle again. */
bool post_done(struct post *p, CURLcode code, struct post_outcome *outcome);
void post_destroy(struct post *p); /* NULL-safe */

/* Formats "v1=" and the HMAC-SHA256 (RFC 2104) of timestamp, dot and body in hexadecimal. */
#define POST_SIGNATURE_BYTES 68
void post_sign(const char *secret, const char *timestamp, const char *body, size_t bytes,
               char signature[POST_SIGNATURE_BYTES]);
