#include "daemon/ingest/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"

struct follow {
    char *path;
    int fd; /* -1: not there yet */
    int64_t position;
    bool reported_truncation;
    char buffer[FOLLOW_CHUNK_BYTES + 1];
};

int follow_create(const char *path, int64_t position_bytes, struct follow **out, struct error *e)
{
    struct follow *f = calloc(1, sizeof *f);

    if (f)
        f->path = strdup(path);
    if (!f || !f->path) {
        free(f);
        return error_set(e, ERR_NO_MEMORY, "no memory to follow %s", path);
    }
    f->fd = -1;
    f->position = position_bytes;
    *out = f;
    return 0;
}

void follow_destroy(struct follow *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f);
}

int64_t follow_position(const struct follow *f)
{
    return f->position;
}

void follow_advance(struct follow *f, int64_t position_bytes)
{
    f->position = position_bytes;
}

/* 1: open, 0: not there yet. */
static int follow_open_file(struct follow *f, struct error *e)
{
    if (f->fd >= 0)
        return 1;
    int fd = file_open(f->path, e);
    if (fd < 0)
        return fd == -ERR_NOT_FOUND ? 0 : fd;
    f->fd = fd;
    return 1;
}

static bool follow_is_truncated(struct follow *f, bool *truncated)
{
    struct stat st;
    bool shorter = fstat(f->fd, &st) == 0 && st.st_size < f->position;

    *truncated = shorter && !f->reported_truncation;
    f->reported_truncation = shorter;
    return shorter;
}

/* Cuts what was read behind its last whole line; 0: there is none. */
static size_t follow_whole_lines(struct follow *f, size_t n, struct follow_chunk *chunk)
{
    char *last = memrchr(f->buffer, '\n', n);

    if (!last && n < FOLLOW_CHUNK_BYTES)
        return 0;
    chunk->overlong = !last;
    n = last ? (size_t)(last - f->buffer) + 1 : n;
    for (char *at = f->buffer; last && at <= last; at++)
        if (*at == '\n')
            *at = '\0';
    f->buffer[n] = '\0';
    return n;
}

int follow_read(struct follow *f, struct follow_chunk *chunk, bool *truncated, struct error *e)
{
    *truncated = false;
    *chunk = (struct follow_chunk){0};
    int status = follow_open_file(f, e);
    if (status <= 0)
        return status;
    if (follow_is_truncated(f, truncated))
        return 0;
    ssize_t n = pread(f->fd, f->buffer, FOLLOW_CHUNK_BYTES, f->position);
    if (n < 0)
        return error_set_errno(e, errno, "cannot read %s", f->path);
    chunk->bytes = follow_whole_lines(f, (size_t)n, chunk);
    chunk->text = f->buffer;
    chunk->from_bytes = f->position;
    chunk->to_bytes = f->position + (int64_t)chunk->bytes;
    return chunk->bytes > 0;
}
