#include "daemon/http/handlers/run/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A FIFO or a device would hold the reader up. */
static int run_file_only_file_or_folder(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

int run_file_open(const char *run_dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int folder = open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return -1;
    int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
    int why = errno;
    close(folder);
    errno = why;
    return fd < 0 ? -1 : run_file_only_file_or_folder(fd);
}
