#include "daemon/launch/attempt_tail.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"

#define TAIL_BYTES (256 * 1024) /* of a log or event file: its end is in there */

char *attempt_read_tail(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    char *text = calloc(1, TAIL_BYTES + 1);

    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = file_open(path, NULL);
    if (text && fd >= 0 && fstat(fd, &st) == 0) {
        off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
        ssize_t n = pread(fd, text, TAIL_BYTES, from);
        for (ssize_t i = 0; i < n; i++)
            text[i] = text[i] ? text[i] : ' '; /* what stands behind a NUL counts, too */
        text[n > 0 ? n : 0] = '\0';
        char *newline = from ? strchr(text, '\n') : NULL;
        if (newline)
            memmove(text, newline + 1, strlen(newline + 1) + 1);
    }
    if (fd >= 0)
        close(fd);
    return text;
}
