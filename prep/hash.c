#include "prep/hash.h"

#include <stdio.h>

#include <xxhash.h>

/* Never defined: a struct hash is the library's state, which wants its own alignment. */
static XXH3_state_t *hash_state(struct hash *h)
{
    return (XXH3_state_t *)(void *)h;
}

int hash_create(struct hash **out, struct error *e)
{
    XXH3_state_t *s = XXH3_createState();

    *out = (struct hash *)(void *)s;
    if (!s)
        return error_set(e, ERR_NO_MEMORY, "no memory for a hash");
    XXH3_128bits_reset(s);
    return 0;
}

void hash_destroy(struct hash *h)
{
    if (h)
        XXH3_freeState(hash_state(h));
}

void hash_reset(struct hash *h)
{
    XXH3_128bits_reset(hash_state(h));
}

void hash_add(struct hash *h, const void *data, size_t bytes)
{
    XXH3_128bits_update(hash_state(h), data, bytes);
}

void hash_hex(const struct hash *h, char hex[HASH_HEX_BYTES])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits_digest((const XXH3_state_t *)(const void *)h));
    for (size_t i = 0; i < sizeof canonical; i++)
        snprintf(hex + 2 * i, 3, "%02x", canonical.digest[i]);
}
