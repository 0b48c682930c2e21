#include "daemon/http/download.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/http/access/token.h"

#define BLOCK_BYTES ((size_t)256 * 1024)

struct download {
    struct tokens *tokens;
    int64_t token;
    int fd;
    uint64_t from;
};

static ssize_t download_read_block(void *context, uint64_t position, char *buffer, size_t room)
{
    const struct download *d = context;

    if (!tokens_alive(d->tokens, d->token, clock_now()))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t bytes = pread(d->fd, buffer, room, (off_t)(d->from + position));
    return bytes > 0 ? bytes : MHD_CONTENT_READER_END_WITH_ERROR; /* it has become shorter */
}

static void download_close(void *context)
{
    struct download *d = context;

    close(d->fd);
    free(d);
}

struct MHD_Response *download_response(struct tokens *tokens, int64_t token, int fd, uint64_t from,
                                       uint64_t bytes)
{
    struct download *d = malloc(sizeof *d);

    if (!d)
        return NULL;
    *d = (struct download){tokens, token, fd, from};
    struct MHD_Response *response = MHD_create_response_from_callback(
        bytes, BLOCK_BYTES, download_read_block, d, download_close);
    if (!response)
        free(d);
    return response;
}
