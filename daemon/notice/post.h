/*
 * A notice as a POST of JSON by libcurl, with the headers
 *
 *     Traind-Notice-Id: the notice; the same however often it comes
 *     Traind-Timestamp: 1789000000
 *     Traind-Signature: v1=HEX
 *
 * The last two are sent if the target has a secret: HEX is HMAC-SHA256 (RFC 2104) with it, over the
 * timestamp, a dot and the body.
 *
 * Addresses are checked when they are connected to; with a proxy, those that the name has here. Not
 * thread-safe.
 */
#pragma once

#include <curl/curl.h>

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"

struct post_outcome {
    enum outbox_state state; /* OUTBOX_WAITING: worth another attempt */
    double retry_after;      /* seconds that the receiver asks for; 0: nothing */
    char words[1024];        /* what went wrong; "" if it was delivered */
};

struct post;

/* Borrows n and settings until post_destroy. Adding post_handle to a multi handle starts it. */
int post_create(const struct outbox_notice *n, const struct notice_settings *settings,
                struct post **out, struct error *e);
CURL *post_handle(struct post *p);

/* When curl is done with it. false: it is redirected, add its handle again. */
bool post_done(struct post *p, CURLcode code, struct post_outcome *outcome);
void post_destroy(struct post *p); /* NULL is fine */

#define POST_SIGNATURE_BYTES 68 /* "v1=", 64 digits, NUL */
void post_sign(const char *secret, const char *timestamp, const char *body, size_t bytes,
               char signature[POST_SIGNATURE_BYTES]);
