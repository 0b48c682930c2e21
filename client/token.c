#include "client/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/content.h"
#include "common/system/file.h"

/* Printable and without spaces: nothing of it can end a header. */
static int token_set(const char *text, const char *source, char token[TOKEN_BYTES], struct error *e)
{
    size_t length = strcspn(text, "\r\n");
    bool good = length > 0 && length < TOKEN_BYTES;

    for (size_t i = 0; good && i < length; i++)
        good = text[i] > ' ' && text[i] <= '~';
    if (!good)
        return error_set(e, ERR_INVALID,
                         "%s holds no token: it should be the one line that trainctl token create "
                         "printed",
                         source);
    memcpy(token, text, length);
    token[length] = '\0';
    return 1;
}

bool token_path(char path[PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config)
        return snprintf(path, PATH_MAX, "%s/traind/token", config) < PATH_MAX;
    return home && *home && snprintf(path, PATH_MAX, "%s/.config/traind/token", home) < PATH_MAX;
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

int token_find(char token[TOKEN_BYTES], struct error *e)
{
    const char *given = getenv("TRAINCTL_TOKEN");
    char path[PATH_MAX];

    if (given && *given)
        return token_set(given, "TRAINCTL_TOKEN", token, e);
    if (!token_path(path))
        return 0;
    int fd = file_open(path, e);
    if (fd < 0)
        return fd == -ERR_NOT_FOUND ? 0 : fd;
    int found = token_read(fd, path, token, e);
    close(fd);
    return found;
}
