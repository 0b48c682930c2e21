/* Digests of 128 bits (XXH3) as 32 hex digits, like xxh128sum. They detect errors, not attacks. */
#pragma once

#include <stddef.h>

#include "common/error.h"

#define DIGEST_BYTES 33

void digest_text(const void *data, size_t bytes, char hex[DIGEST_BYTES]);

/* Digest of data in parts. digest_begin returns NULL if out of memory, which the other functions
 * accept; digest_end writes the digest, or "" in that case, and frees d. */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *d, const void *data, size_t bytes);
void digest_end(struct digest *d, char hex[DIGEST_BYTES]);

int digest_file(const char *path, char hex[DIGEST_BYTES], struct error *e);
