#include "daemon/http/archive.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/system/spawn.h"
#include "daemon/http/access/token.h"

#define BLOCK_BYTES           ((size_t)256 * 1024)
#define TAR_SOME_FILES_DIFFER 1    /* exit status: a file grew or went away meanwhile */
#define LOOK_MS               1000 /* between looks at the token while tar prints nothing */

struct archive {
    struct spawn tar;
    struct tokens *tokens;
    int64_t token;
};

int archive_open(const char *state, struct archive **out, struct error *e)
{
    char *argv[] = {"tar",
                    "-C",
                    (char *)state,
                    "--exclude=jobs/.removed-*",
                    "--warning=no-file-changed",
                    "--warning=no-file-removed",
                    "-cf",
                    "-",
                    "jobs",
                    NULL};
    struct archive *a = calloc(1, sizeof *a);

    *out = NULL;
    if (!a)
        return error_set(e, ERR_NO_MEMORY, "no memory for the backup");
    struct spawn_request request = {.argv = argv, .stream = {[SPAWN_OUT] = SPAWN_COLLECTED}};
    int status = spawn_begin(&request, &a->tar, e);
    if (status)
        free(a);
    else
        *out = a;
    return status;
}

/* All was read; the archive is whole if tar says so. */
static ssize_t archive_end(struct archive *a)
{
    while (!spawn_look(&a->tar, LOOK_MS))
        ;
    if (WIFEXITED(a->tar.status) && WEXITSTATUS(a->tar.status) <= TAR_SOME_FILES_DIFFER)
        return MHD_CONTENT_READER_END_OF_STREAM;
    log_error("the backup of the runs is incomplete: tar failed");
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t archive_read(void *context, uint64_t position, char *buffer, size_t room)
{
    struct archive *a = context;
    struct pollfd fd = {.fd = a->tar.fd[SPAWN_OUT], .events = POLLIN};

    (void)position; /* it is read once, from the start */
    for (;;) {
        if (a->token && !tokens_alive(a->tokens, a->token, clock_now()))
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (poll(&fd, 1, LOOK_MS) <= 0)
            continue;
        ssize_t bytes = read(fd.fd, buffer, room);
        if (bytes > 0)
            return bytes;
        if (bytes == 0)
            return archive_end(a);
        if (errno != EAGAIN && errno != EINTR)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
}

void archive_close(struct archive *a)
{
    if (!a)
        return;
    spawn_clear(&a->tar);
    free(a);
}

static void close_archive(void *context)
{
    archive_close(context);
}

struct MHD_Response *archive_response(struct archive *a, struct tokens *tokens, int64_t token)
{
    a->tokens = tokens;
    a->token = token;
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, archive_read, a,
                                             close_archive);
}
