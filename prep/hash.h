/* XXH3 of 128 bits as hexadecimal digits: what manifest.json holds of each shard, and what
 * `xxhsum -H2` prints. */
#pragma once

#include <stddef.h>

#include "common/error.h"

#define HASH_HEX_BYTES 33 /* 32 digits and a NUL */

struct hash;

int hash_create(struct hash **out, struct error *e);
void hash_destroy(struct hash *h); /* NULL is fine */

void hash_reset(struct hash *h); /* begins anew; a new one needs none */
void hash_add(struct hash *h, const void *data, size_t bytes);
void hash_hex(const struct hash *h, char hex[HASH_HEX_BYTES]);
