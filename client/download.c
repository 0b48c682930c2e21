#include "client/download.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/api.h"
#include "common/system/file.h"

static char temporary[PATH_MAX];

/* Ends the process by the signal, whose action SA_RESETHAND has reset. */
static void download_on_signal(int signal_number)
{
    unlink(temporary);
    raise(signal_number);
}

static const int download_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define DOWNLOAD_SIGNALS (sizeof download_signals / sizeof download_signals[0])

static int download_fetch(const char *path, const char *type, double *bytes, struct error *e)
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
    struct sigaction action = {.sa_handler = download_on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before[DOWNLOAD_SIGNALS] = {0};
    struct stat st;

    if ((size_t)snprintf(temporary, sizeof temporary, "%s.part", file) >= sizeof temporary)
        return error_set(e, ERR_USAGE, "the path of the file is too long");
    if (stat(file, &st) == 0 && !S_ISREG(st.st_mode))
        return error_set(e, ERR_USAGE, "%s is %s, not a regular file", file, file_kind(st.st_mode));
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < DOWNLOAD_SIGNALS; i++) /* ignored ones stay so, as under nohup */
        if (!sigaction(download_signals[i], NULL, &before[i]) && before[i].sa_handler != SIG_IGN)
            sigaction(download_signals[i], &action, NULL);
    int status = download_fetch(path, type, bytes, e);
    if (status == 0 && rename(temporary, file))
        status = error_set_errno(e, errno, "cannot write %s", file);
    if (status)
        unlink(temporary);
    else
        file_sync_dir_of(file);
    for (size_t i = 0; i < DOWNLOAD_SIGNALS; i++)
        sigaction(download_signals[i], &before[i], NULL);
    return status;
}
