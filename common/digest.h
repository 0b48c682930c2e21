/* XXH3's 128 bits of a file (xxhash.com), as 32 hex digits in the form that xxh128sum prints: tells
 * a file that changed from one that did not. Not against malice. */
#pragma once

#include <stddef.h>

#include "common/error.h"

#define DIGEST_BYTES 33 /* with the final NUL */

void digest_text(const void *data, size_t bytes, char hex[DIGEST_BYTES]);

/* The same of bytes that come in parts. digest_end gives the hex and frees it; NULL (there was no
 * memory) gives "". */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *d, const void *data, size_t bytes);
void digest_end(struct digest *d, char hex[DIGEST_BYTES]);

/* ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_IO. */
int digest_file(const char *path, char hex[DIGEST_BYTES], struct error *e);
