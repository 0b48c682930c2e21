#include "client/token.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "client/context.h"
#include "client/settings.h"
#include "common/system/content.h"
#include "common/system/file.h"

static char source[PATH_MAX];
static const char *used; /* NULL: as the user has set it up */

/* Printable and without spaces: nothing of it can end a header. */
static int token_set(const char *text, const char *where, char token[TOKEN_BYTES], struct error *e)
{
    size_t length = strcspn(text, "\r\n");
    bool good = length > 0 && length < TOKEN_BYTES;

    for (size_t i = 0; good && i < length; i++)
        good = text[i] > ' ' && text[i] <= '~';
    if (!good)
        return error_set(e, ERR_INVALID,
                         "%s holds no token: it should be the one line that trainctl token create "
                         "printed",
                         where);
    memcpy(token, text, length);
    token[length] = '\0';
    return 1;
}

static int token_read(int fd, const char *path, char token[TOKEN_BYTES], struct error *e)
{
    char text[TOKEN_BYTES + 1] = "";
    struct stat st;

    if (fstat(fd, &st))
        return error_set_errno(e, errno, "cannot look at %s", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return error_set(e, ERR_NOT_ALLOWED,
                         "%s belongs to another user (uid %lu), who may know or change its token: "
                         "put it into a file of your own",
                         path, (unsigned long)st.st_uid);
    if (st.st_mode & 077)
        return error_set(
            e, ERR_NOT_ALLOWED,
            "%s can be read by others, so its token may be known to them: chmod 600 it "
            "(and have a new token made)",
            path);
    ssize_t bytes = read(fd, text, sizeof text - 1);
    size_t length = bytes < 0 ? 0 : (size_t)bytes;
    int found = bytes < 0 ? error_set_errno(e, errno, "cannot read %s", path)
                          : content_drop_mark(text, &length, e);
    if (!found)
        found = token_set(text, path, token, e);
    explicit_bzero(text, sizeof text);
    return found;
}

int token_load(const char *path, char token[TOKEN_BYTES], struct error *e)
{
    int fd = file_open(path, e);

    if (fd < 0)
        return fd;
    int found = token_read(fd, path, token, e);
    close(fd);
    return found;
}

const char *token_source(void)
{
    return used ? NULL : source;
}

void token_use(const char *token)
{
    used = token;
}

/* The file in which it should be: 1; 0: in none. */
static int token_place(char path[PATH_MAX], bool *must, struct error *e)
{
    *must = true;
    if (client.context)
        return client.token_file && snprintf(path, PATH_MAX, "%s", client.token_file) < PATH_MAX;
    int named = context_token_file(client.server, path, e);
    *must = named > 0;
    return named ? named : config_path(path, "token");
}

int token_find(char token[TOKEN_BYTES], struct error *e)
{
    const char *given = getenv("TRAINCTL_TOKEN");
    bool must = false;

    *source = '\0';
    if (used)
        return *used ? token_set(used, "that", token, e) : 0;
    if (given && *given)
        return token_set(given, strcpy(source, "TRAINCTL_TOKEN"), token, e);
    int found = token_place(source, &must, e);
    if (found > 0)
        found = token_load(source, token, e);
    if (found > 0)
        return found;
    if (found == -ERR_NOT_FOUND && must)
        return error_set(e, ERR_NO_TOKEN,
                         "the file with the token for %s, %s, is not there: trainctl login %s "
                         "makes it again",
                         client.server, source, client.server);
    *source = '\0';
    return found == -ERR_NOT_FOUND ? 0 : found;
}

/* ---------------------------------------------------------------- asking */

static void on_interrupt(int number)
{
    (void)number; /* read() returns */
}

static ssize_t read_hidden(char *text, size_t bytes)
{
    struct sigaction interrupt = {.sa_handler = on_interrupt}, before;
    struct termios seen, hidden;

    if (tcgetattr(STDIN_FILENO, &seen))
        return read(STDIN_FILENO, text, bytes);
    hidden = seen;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    sigaction(SIGINT, &interrupt, &before);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    ssize_t got = read(STDIN_FILENO, text, bytes);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &seen);
    sigaction(SIGINT, &before, NULL);
    fputc('\n', stderr);
    return got;
}

int token_ask(const char *words, char token[TOKEN_BYTES], struct error *e)
{
    char text[TOKEN_BYTES + 1] = "";

    if (isatty(STDIN_FILENO))
        fputs(words, stderr);
    errno = 0;
    ssize_t got = read_hidden(text, sizeof text - 1);
    int status = got < 0 && errno == EINTR ? error_set(e, ERR_INTERRUPTED, "interrupted")
                                           : token_set(text, "standard input", token, e);
    explicit_bzero(text, sizeof text);
    return status;
}
