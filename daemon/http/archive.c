#include "daemon/http/archive.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/system/spawn.h"
#include "daemon/http/access/token.h"

#define BLOCK_BYTES           ((size_t)256 * 1024)
#define ARCHIVES_MAX          4
#define TAR_SOME_FILES_DIFFER 1    /* exit status: a file grew or went away meanwhile */
#define LOOK_MS               1000 /* between looks at the token while tar prints nothing */

struct archives {
    struct tokens *tokens;
    pthread_mutex_t lock; /* of all below, and of every archive's part that says so */
    struct archive *first;
    int count;
    bool stopping;
};

enum archive_end { ARCHIVE_GOES_ON, ARCHIVE_COMPLETE, ARCHIVE_BROKEN };

struct archive {
    struct archives *all;
    int64_t token;
    struct MHD_Connection *connection;
    pthread_t thread;
    pthread_cond_t sent; /* the block was sent, or it is to end */

    /* under the lock */
    struct archive *next;
    struct spawn tar; /* its pid */
    size_t from, bytes;
    bool waiting, closing;
    enum archive_end end;

    char block[BLOCK_BYTES]; /* the thread's while bytes is 0, else the connection's */
};

/* ---------------------------------------------------------------- the thread */

/* Holds the lock. */
static void archive_wake(struct archive *a)
{
    if (a->waiting)
        MHD_resume_connection(a->connection);
    a->waiting = false;
}

/* Holds the lock, which it gives back meanwhile. False: it is to end. */
static bool archive_wait_until_sent(struct archive *a)
{
    while (a->bytes && !a->closing)
        pthread_cond_wait(&a->sent, &a->all->lock);
    return !a->closing;
}

/* -1: the token is gone, or the pipe cannot be read; 0: tar has printed all; else bytes. Without
 * the lock. */
static ssize_t archive_fill(struct archive *a)
{
    struct pollfd fd = {.fd = a->tar.fd[SPAWN_OUT], .events = POLLIN};

    for (;;) {
        if (a->token && !tokens_alive(a->all->tokens, a->token, clock_now()))
            return -1;
        if (poll(&fd, 1, LOOK_MS) <= 0)
            continue; /* whoever closes it ends tar, which ends the pipe */
        ssize_t bytes = read(fd.fd, a->block, BLOCK_BYTES);
        if (bytes >= 0 || (errno != EAGAIN && errno != EINTR))
            return bytes;
    }
}

/* The archive is whole if tar reports so. Holds the lock, but not while it waits. */
static enum archive_end archive_judge(struct archive *a)
{
    struct pollfd fd = {.fd = a->tar.pidfd, .events = POLLIN};

    while (!spawn_look(&a->tar, 0)) {
        pthread_mutex_unlock(&a->all->lock);
        poll(&fd, 1, LOOK_MS);
        pthread_mutex_lock(&a->all->lock);
    }
    if (WIFEXITED(a->tar.status) && WEXITSTATUS(a->tar.status) <= TAR_SOME_FILES_DIFFER)
        return ARCHIVE_COMPLETE;
    if (!a->closing)
        log_error("the backup of the runs is incomplete: tar failed");
    return ARCHIVE_BROKEN;
}

static void *archive_pump(void *context)
{
    struct archive *a = context;

    pthread_mutex_lock(&a->all->lock);
    while (!a->end && archive_wait_until_sent(a)) {
        pthread_mutex_unlock(&a->all->lock);
        ssize_t bytes = archive_fill(a);
        pthread_mutex_lock(&a->all->lock);
        if (bytes > 0) {
            a->from = 0;
            a->bytes = (size_t)bytes;
        } else {
            a->end = bytes == 0 ? archive_judge(a) : ARCHIVE_BROKEN;
        }
        archive_wake(a);
    }
    pthread_mutex_unlock(&a->all->lock);
    return NULL;
}

/* ---------------------------------------------------------------- the answer */

/* Holds the lock. */
static ssize_t archive_send(struct archive *a, char *buffer, size_t room)
{
    if (a->closing)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (a->bytes) {
        size_t bytes = a->bytes < room ? a->bytes : room;
        memcpy(buffer, a->block + a->from, bytes);
        a->from += bytes;
        a->bytes -= bytes;
        if (a->bytes == 0)
            pthread_cond_signal(&a->sent);
        return (ssize_t)bytes;
    }
    if (a->end)
        return a->end == ARCHIVE_COMPLETE ? MHD_CONTENT_READER_END_OF_STREAM
                                          : MHD_CONTENT_READER_END_WITH_ERROR;
    a->waiting = true;
    MHD_suspend_connection(a->connection);
    return 0;
}

static ssize_t archive_read(void *context, uint64_t position, char *buffer, size_t room)
{
    struct archive *a = context;

    (void)position; /* it is read once, from the start */
    pthread_mutex_lock(&a->all->lock);
    ssize_t bytes = archive_send(a, buffer, room);
    pthread_mutex_unlock(&a->all->lock);
    return bytes;
}

static void close_archive(void *context)
{
    archive_close(context);
}

struct MHD_Response *archive_response(struct archive *a, struct MHD_Connection *connection)
{
    a->connection = connection;
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, archive_read, a,
                                             close_archive);
}

/* ---------------------------------------------------------------- one archive */

/* Holds the lock. */
static int archives_admit(struct archives *all, struct archive *a, struct error *e)
{
    if (all->stopping)
        return error_set(e, ERR_UNREACHABLE, "the daemon is being stopped");
    if (all->count >= ARCHIVES_MAX)
        return error_set(e, ERR_TOO_MANY,
                         "%d backups of the runs are being sent already, which is the limit; try "
                         "again when one has ended",
                         ARCHIVES_MAX);
    a->next = all->first;
    all->first = a;
    all->count++;
    return 0;
}

/* Holds the lock. */
static void archives_remove(struct archives *all, const struct archive *a)
{
    struct archive **at = &all->first;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    all->count--;
}

/* Holds the lock. */
static int archive_start(struct archive *a, const char *state, struct error *e)
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
    struct spawn_request request = {.argv = argv, .stream = {[SPAWN_OUT] = SPAWN_COLLECTED}};
    int status = spawn_begin(&request, &a->tar, e);

    if (!status && pthread_create(&a->thread, NULL, archive_pump, a))
        status = error_set(e, ERR_NO_MEMORY, "no thread for the backup");
    return status;
}

static void archive_free(struct archive *a)
{
    spawn_clear(&a->tar);
    pthread_cond_destroy(&a->sent);
    free(a);
}

int archive_open(struct archives *all, const char *state, int64_t token, struct archive **out,
                 struct error *e)
{
    struct archive *a = calloc(1, sizeof *a);

    *out = NULL;
    if (!a)
        return error_set(e, ERR_NO_MEMORY, "no memory for the backup");
    a->all = all;
    a->token = token;
    a->tar = SPAWN_NONE;
    pthread_cond_init(&a->sent, NULL);
    pthread_mutex_lock(&all->lock);
    int status = archives_admit(all, a, e);
    if (!status && (status = archive_start(a, state, e)))
        archives_remove(all, a);
    pthread_mutex_unlock(&all->lock);
    if (status)
        archive_free(a);
    else
        *out = a;
    return status;
}

/* Holds the lock. tar may wait for a disk: its end wakes the thread. */
static void archive_break_off(struct archive *a)
{
    a->closing = true;
    if (a->tar.pid > 0)
        kill(a->tar.pid, SIGKILL);
    pthread_cond_signal(&a->sent);
    archive_wake(a);
}

void archive_close(struct archive *a)
{
    if (!a)
        return;
    struct archives *all = a->all;
    pthread_mutex_lock(&all->lock);
    archive_break_off(a);
    archives_remove(all, a);
    pthread_mutex_unlock(&all->lock);
    pthread_join(a->thread, NULL);
    archive_free(a);
}

/* ---------------------------------------------------------------- all archives */

int archives_create(struct tokens *tokens, struct archives **out, struct error *e)
{
    struct archives *all = calloc(1, sizeof *all);

    *out = all;
    if (!all)
        return error_set(e, ERR_NO_MEMORY, "no memory for backups");
    all->tokens = tokens;
    pthread_mutex_init(&all->lock, NULL);
    return 0;
}

void archives_stop(struct archives *all)
{
    pthread_mutex_lock(&all->lock);
    all->stopping = true;
    for (struct archive *a = all->first; a; a = a->next)
        archive_break_off(a);
    pthread_mutex_unlock(&all->lock);
}

void archives_destroy(struct archives *all)
{
    if (!all)
        return;
    pthread_mutex_destroy(&all->lock);
    free(all);
}
