#include "client/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"

int files_make_temporary(char folder[PATH_MAX], struct error *e)
{
    const char *tmp = getenv("TMPDIR");
    const char *parent = tmp && *tmp ? tmp : "/tmp";
    int status = file_path(folder, e, "%s/trainctl-XXXXXX", parent);

    if (!status && !mkdtemp(folder))
        status = error_set_errno(e, errno, "cannot make a folder in %s", parent);
    return status;
}

static char temporary[PATH_MAX];

/* Terminates the process by the same signal, whose default action SA_RESETHAND has restored. */
static void files_on_signal(int signal_number)
{
    unlink(temporary);
    raise(signal_number);
}

static const int files_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof files_signals / sizeof files_signals[0])

static int files_fill(files_fill_call *fill, void *context, double *bytes, struct error *e)
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    int reason = errno;
    struct stat st;

    if (!out && fd >= 0)
        close(fd);
    if (!out)
        return error_set_errno(e, reason, "cannot create %s", temporary);
    int status = fill(out, context, e);
    if (fflush(out) || fsync(fd) || fstat(fd, &st))
        status = status ? status : error_set_errno(e, errno, "cannot write %s", temporary);
    else
        *bytes = (double)st.st_size;
    fclose(out);
    return status;
}

int files_write(const char *file, files_fill_call *fill, void *context, double *bytes,
                struct error *e)
{
    struct sigaction action = {.sa_handler = files_on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before[SIGNALS] = {0};
    struct stat st;

    if ((size_t)snprintf(temporary, sizeof temporary, "%s.part", file) >= sizeof temporary)
        return error_set(e, ERR_USAGE, "the path of the file is too long");
    if (stat(file, &st) == 0 && !S_ISREG(st.st_mode))
        return error_set(e, ERR_USAGE, "%s is %s, not a regular file", file, file_kind(st.st_mode));
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNALS; i++) /* keep ignored ones ignored, as under nohup */
        if (!sigaction(files_signals[i], NULL, &before[i]) && before[i].sa_handler != SIG_IGN)
            sigaction(files_signals[i], &action, NULL);
    int status = files_fill(fill, context, bytes, e);
    if (status == 0 && rename(temporary, file))
        status = error_set_errno(e, errno, "cannot write %s", file);
    if (status)
        unlink(temporary);
    else
        file_sync_dir_of(file);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(files_signals[i], &before[i], NULL);
    return status;
}
