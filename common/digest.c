#include "common/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/system/file.h"

#define XXH_INLINE_ALL /* for a complete type of the streaming state */
#include <xxhash.h>

#define PIECE_BYTES ((size_t)1 << 20)

static void digest_write_hex(XXH128_hash_t hash, char hex[DIGEST_BYTES])
{
    snprintf(hex, DIGEST_BYTES, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

void digest_text(const void *data, size_t bytes, char hex[DIGEST_BYTES])
{
    digest_write_hex(XXH3_128bits(data, bytes), hex);
}

struct digest {
    XXH3_state_t state;
};

struct digest *digest_begin(void)
{
    struct digest *d = aligned_alloc(_Alignof(struct digest), sizeof *d);

    if (d)
        XXH3_128bits_reset(&d->state);
    return d;
}

void digest_add(struct digest *d, const void *data, size_t bytes)
{
    if (d)
        XXH3_128bits_update(&d->state, data, bytes);
}

void digest_end(struct digest *d, char hex[DIGEST_BYTES])
{
    hex[0] = '\0';
    if (d)
        digest_write_hex(XXH3_128bits_digest(&d->state), hex);
    free(d);
}

static int digest_hash_all(int fd, XXH3_state_t *state)
{
    char *piece = malloc(PIECE_BYTES);
    ssize_t n = 0;

    if (!piece)
        return ENOMEM;
    XXH3_128bits_reset(state);
    while ((n = read(fd, piece, PIECE_BYTES)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            XXH3_128bits_update(state, piece, (size_t)n);
    int failed = n < 0 ? errno : 0;
    free(piece);
    return failed;
}

int digest_file(const char *path, char hex[DIGEST_BYTES], struct error *e)
{
    XXH3_state_t state;
    int fd = file_open(path, e);

    if (fd < 0)
        return fd;
    int failed = digest_hash_all(fd, &state);
    close(fd);
    if (failed)
        return error_set_errno(e, failed, "cannot read %s", path);
    digest_write_hex(XXH3_128bits_digest(&state), hex);
    return 0;
}
