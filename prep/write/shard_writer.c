#include "prep/write/shard_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/dataset/tfrecord.h"

#define BUFFER_BYTES (1 << 20)

struct shard_writer {
    FILE *file;
    char *path;
    struct hash *hash;
    uint64_t bytes;
};

int shard_writer_create(const char *path, struct shard_writer **out, struct error *e)
{
    struct shard_writer *w = calloc(1, sizeof *w);

    *out = NULL;
    if (!w)
        return error_set(e, ERR_NO_MEMORY, "no memory to write %s", path);
    int rc = hash_create(&w->hash, e);
    w->path = strdup(path);
    if (rc == 0 && !w->path)
        rc = error_set(e, ERR_NO_MEMORY, "no memory to write %s", path);
    w->file = rc ? NULL : fopen(path, "wbe");
    if (rc == 0 && !w->file)
        rc = error_set_errno(e, errno, "cannot create %s", path);
    if (rc) {
        shard_writer_abandon(w);
        return rc;
    }
    setvbuf(w->file, NULL, _IOFBF, BUFFER_BYTES);
    *out = w;
    return 0;
}

static int shard_writer_write(struct shard_writer *w, const void *data, size_t bytes,
                              struct error *e)
{
    hash_add(w->hash, data, bytes);
    w->bytes += bytes;
    if (fwrite(data, 1, bytes, w->file) == bytes)
        return 0;
    return error_set_errno(e, errno, "cannot write %s", w->path);
}

int shard_writer_put(struct shard_writer *w, const struct tf_example *x, struct error *e)
{
    uint8_t header[TFRECORD_HEADER_BYTES], footer[TFRECORD_FOOTER_BYTES], *payload;
    size_t bytes;

    int rc = tf_example_pack(x, &payload, &bytes, e);
    if (rc)
        return rc;
    tfrecord_header(bytes, header);
    tfrecord_footer(payload, bytes, footer);
    rc = shard_writer_write(w, header, sizeof header, e);
    if (rc == 0)
        rc = shard_writer_write(w, payload, bytes, e);
    if (rc == 0)
        rc = shard_writer_write(w, footer, sizeof footer, e);
    free(payload);
    return rc;
}

static void shard_writer_free(struct shard_writer *w)
{
    hash_destroy(w->hash);
    free(w->path);
    free(w);
}

int shard_writer_finish(struct shard_writer *w, uint64_t *bytes, char hex[HASH_HEX_BYTES],
                        struct error *e)
{
    int rc = 0;

    if (fflush(w->file) || fsync(fileno(w->file)))
        rc = error_set_errno(e, errno, "cannot write %s", w->path);
    if (rc) {
        shard_writer_abandon(w);
        return rc;
    }
    rc = fclose(w->file) ? error_set_errno(e, errno, "cannot write %s", w->path) : 0;
    if (rc)
        unlink(w->path);
    *bytes = w->bytes;
    hash_hex(w->hash, hex);
    shard_writer_free(w);
    return rc;
}

void shard_writer_abandon(struct shard_writer *w)
{
    if (!w)
        return;
    if (w->file) {
        fclose(w->file);
        unlink(w->path);
    }
    shard_writer_free(w);
}
