#include "client/download.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/api.h"
#include "common/system/file.h"

static int download_fetch(const char *path, const char *type, const char *temporary, double *bytes,
                          struct error *e)
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    int reason = errno;
    struct stat st;

    if (!out && fd >= 0)
        close(fd);
    if (!out)
        return error_set_errno(e, reason, "cannot create %s", temporary);
    int status = api_get_file(path, type, out, e);
    if (fflush(out) || fsync(fd) || fstat(fd, &st))
        status = status ? status : error_set_errno(e, errno, "cannot write %s", temporary);
    else
        *bytes = (double)st.st_size;
    fclose(out);
    return status;
}

int download(const char *path, const char *type, const char *file, double *bytes, struct error *e)
{
    char temporary[PATH_MAX];

    if ((size_t)snprintf(temporary, sizeof temporary, "%s.part", file) >= sizeof temporary)
        return error_set(e, ERR_USAGE, "the path of the file is too long");
    int status = download_fetch(path, type, temporary, bytes, e);
    if (status == 0 && rename(temporary, file))
        status = error_set_errno(e, errno, "cannot write %s", file);
    if (status)
        unlink(temporary);
    else
        file_sync_dir_of(file);
    return status;
}
