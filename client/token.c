#include "client/token.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/context.h"
#include "client/context.h"
#include "common/system/content.h"
#include "common/system/file.h"

static char source[PATH_MAX];
static const char *used;

/* Accepts only printable characters without spaces, so that a token cannot end the header. */
static int token_set(const char *text, const char *where, char token[TOKEN_BYTES], struct error *e)
{
    size_t length = strcspn(text, "\r\n");
    bool good = length > 0 && length < TOKEN_BYTES;

    for (size_t i = 0; good && i < length; i++)
        good = text[i] > ' ' && text[i] <= '~';
    if (!good)
        return error_set(
            e, ERR_INVALID,
            "%s contains no token: it should be the single line that trainctl token create "
            "printed",
            where);
    memcpy(token, text, length);
    token[length] = '\0';
    return 1;
}

int token_load(const char *path, char token[TOKEN_BYTES], struct error *e)
{
    char text[TOKEN_BYTES + 1] = "";
    int fd = file_open(path, e), found = fd < 0 ? fd : 0;
    struct stat st = {0};

    if (!found && fstat(fd, &st))
        found = error_set_errno(e, errno, "cannot access %s", path);
    if (!found && st.st_uid != geteuid() && st.st_uid != 0)
        found = error_set(e, ERR_NOT_ALLOWED,
                          "%s belongs to another user (uid %lu), who may know or change its token: "
                          "put it into a file of your own",
                          path, (unsigned long)st.st_uid);
    if (!found && (st.st_mode & 077))
        found = error_set(e, ERR_NOT_ALLOWED,
                          "%s is readable by others, who may know its token: chmod 600 "
                          "it (and have a new token created)",
                          path);
    ssize_t bytes = found ? 0 : read(fd, text, sizeof text - 1);
    size_t length = bytes < 0 ? 0 : (size_t)bytes;
    if (bytes < 0)
        found = error_set_errno(e, errno, "cannot read %s", path);
    if (!found)
        found = content_drop_mark(text, &length, e);
    if (!found)
        found = token_set(text, path, token, e);
    explicit_bzero(text, sizeof text);
    if (fd >= 0)
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

int token_find(char token[TOKEN_BYTES], struct error *e)
{
    const char *given = used ? used : getenv("TRAINCTL_TOKEN");

    *source = '\0';
    if (used || (given && *given))
        return *given ? token_set(given, strcpy(source, "TRAINCTL_TOKEN"), token, e) : 0;
    if (client.context ? !client.token_file : !config_path(source, "token"))
        return 0;
    if (client.context)
        snprintf(source, sizeof source, "%s", client.token_file);
    int found = token_load(source, token, e);
    if (found != -ERR_NOT_FOUND)
        return found;
    *source = '\0';
    return client.context
               ? error_append(e, "; trainctl login %s asks for the token again", client.server)
               : 0;
}

int token_ask(const char *words, char token[TOKEN_BYTES], struct error *e)
{
    char line[TOKEN_BYTES + 1] = "";
    char *text = isatty(STDIN_FILENO) ? getpass(words) : fgets(line, sizeof line, stdin);
    int status = token_set(text ? text : "", "standard input", token, e);

    if (text)
        explicit_bzero(text, strlen(text));
    return status;
}
