#include "prep/write/shard_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/dataset/tfrecord.h"
#include "common/xalloc.h"

#define BUFFER_BYTES (1 << 20)

struct shard_writer {
    FILE *file;
    char *path;
    struct digest *digest;
    uint64_t bytes;
};

int shard_writer_create(const char *path, struct shard_writer **out, struct error *e)
{
    FILE *file = fopen(path, "wbe");

    *out = NULL;
    if (!file)
        return error_set_errno(e, errno, "cannot create %s", path);
    setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
    *out = xcalloc(1, sizeof **out);
    **out = (struct shard_writer){.file = file, .path = xstrdup(path), .digest = digest_begin()};
    return 0;
}

static int shard_writer_write(struct shard_writer *w, const void *data, size_t bytes,
                              struct error *e)
{
    digest_add(w->digest, data, bytes);
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

static void shard_writer_free(struct shard_writer *w, char hex[DIGEST_BYTES])
{
    digest_end(w->digest, hex);
    free(w->path);
    free(w);
}

int shard_writer_finish(struct shard_writer *w, uint64_t *bytes, char hex[DIGEST_BYTES],
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
    shard_writer_free(w, hex);
    return rc;
}

void shard_writer_abandon(struct shard_writer *w)
{
    char hex[DIGEST_BYTES];

    if (!w)
        return;
    if (w->file) {
        fclose(w->file);
        unlink(w->path);
    }
    shard_writer_free(w, hex);
}
