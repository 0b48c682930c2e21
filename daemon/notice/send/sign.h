/*
 * Who receives a notice can tell that it is from this daemon and not an old one:
 *
 *     Traind-Timestamp: 1789000000
 *     Traind-Signature: v1=HEX
 *
 * HEX is HMAC-SHA256 (RFC 2104) with the secret of the target over the timestamp, a dot and the
 * body. By libsodium, which the daemon needs for its tokens and which takes keys of any length.
 */
#pragma once

#include <stddef.h>

#define SIGN_BYTES 68 /* "v1=", 64 digits, NUL */

void sign_body(const char *secret, const char *timestamp, const char *body, size_t bytes,
               char signature[SIGN_BYTES]);
