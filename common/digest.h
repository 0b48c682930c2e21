/* XXH3 with 128 bits as 32 hex digits, as printed by xxh128sum: detects changes, not malice. */
#pragma once

#include <stddef.h>

#include "common/error.h"

#define DIGEST_BYTES 33

void digest_text(const void *data, size_t bytes, char hex[DIGEST_BYTES]);

/* The same of data in parts. digest_end writes the digest and frees d; "" if d is NULL (no
 * memory). */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *d, const void *data, size_t bytes);
void digest_end(struct digest *d, char hex[DIGEST_BYTES]);

int digest_file(const char *path, char hex[DIGEST_BYTES], struct error *e);
