#include "daemon/ingest/tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/xalloc.h"
#include "common/system/file.h"

#define TAIL_MAGIC 0x7a117a11u

struct tail {
    unsigned magic;
    char *path;
    int fd;                    /* negative: not open */
    int64_t position, read_to; /* read_to: the end of the last chunk */
    bool reported_truncation;
    char buffer[TAIL_CHUNK_BYTES + 1];
};

struct tail *tail_create(const char *path, int64_t position_bytes)
{
    struct tail *t = xcalloc(1, sizeof *t);

    t->path = xstrdup(path);
    t->fd = -1;
    t->magic = TAIL_MAGIC;
    t->position = position_bytes;
    return t;
}

void tail_destroy(struct tail *t)
{
    if (!t)
        return;
    assert_object_ends(t, TAIL_MAGIC);
    if (t->fd >= 0)
        close(t->fd);
    free(t->path);
    free(t);
}

int64_t tail_position(const struct tail *t)
{
    assert_object(t, TAIL_MAGIC);
    return t->position;
}

void tail_advance(struct tail *t, int64_t position_bytes)
{
    assert_object(t, TAIL_MAGIC);
    assert_always(position_bytes >= t->position && position_bytes <= t->read_to);
    t->position = position_bytes;
}

static bool tail_is_truncated(struct tail *t, bool *truncated)
{
    struct stat st;
    bool shorter = fstat(t->fd, &st) == 0 && st.st_size < t->position;

    *truncated = shorter && !t->reported_truncation;
    t->reported_truncation = shorter;
    return shorter;
}

static size_t tail_whole_lines(struct tail *t, size_t n, struct tail_chunk *chunk)
{
    char *last = memrchr(t->buffer, '\n', n);

    if (!last && n < TAIL_CHUNK_BYTES)
        return 0;
    chunk->overlong = !last;
    n = last ? (size_t)(last - t->buffer) + 1 : n;
    for (char *at = t->buffer; last && at <= last; at++)
        if (*at == '\n')
            *at = '\0';
    t->buffer[n] = '\0';
    return n;
}

int tail_read(struct tail *t, struct tail_chunk *chunk, bool *truncated, struct error *e)
{
    assert_object(t, TAIL_MAGIC);
    *truncated = false;
    *chunk = (struct tail_chunk){0};
    if (t->fd < 0 && (t->fd = file_open(t->path, e)) < 0)
        return t->fd == -ERR_NOT_FOUND ? 0 : t->fd;
    if (tail_is_truncated(t, truncated))
        return 0;
    ssize_t n = pread(t->fd, t->buffer, TAIL_CHUNK_BYTES, t->position);
    if (n < 0)
        return error_set_errno(e, errno, "cannot read %s", t->path);
    chunk->bytes = tail_whole_lines(t, (size_t)n, chunk);
    chunk->text = t->buffer;
    chunk->from_bytes = t->position;
    chunk->to_bytes = t->read_to = t->position + (int64_t)chunk->bytes;
    return chunk->bytes > 0;
}
