#include "common/system/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/file.h"

static _Atomic(const char *) process_roots;

void open_beneath_set_roots(const char *roots)
{
    const char *now = atomic_load(&process_roots);

    if (now == roots || (now && roots && strcmp(now, roots) == 0))
        return;
    char *copy = roots ? strdup(roots) : NULL;
    if (roots && !copy)
        abort(); /* never continue without the restriction */
    atomic_store(&process_roots, copy);
}

const char *open_beneath_roots(void)
{
    return atomic_load(&process_roots);
}

static bool open_beneath_contains(const char *folder, size_t length, const char *path)
{
    while (length > 1 && folder[length - 1] == '/')
        length--;
    if (length == 1 && folder[0] == '/')
        return path[0] == '/';
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

bool open_beneath_holds(const char *roots, const char *path)
{
    char root[PATH_MAX], real[PATH_MAX];

    for (const char *at = roots; *at; at += strcspn(at, ":"), at += *at == ':') {
        size_t length = strcspn(at, ":");
        if (length == 0 || length >= sizeof root)
            continue;
        snprintf(root, sizeof root, "%.*s", (int)length, at);
        const char *folder = realpath(root, real) ? real : root;
        if (open_beneath_contains(folder, strlen(folder), path))
            return true;
    }
    return false;
}

static void open_beneath_name_link(int fd, char link[32])
{
    snprintf(link, 32, "/proc/self/fd/%d", fd);
}

static int open_beneath_check_place(int fd, const char *roots, const char *path, struct error *e)
{
    char link[32], real[PATH_MAX];

    open_beneath_name_link(fd, link);
    ssize_t length = readlink(link, real, sizeof real - 1);
    if (length < 0)
        return error_set_errno(e, errno, "cannot resolve %s, which requires /proc", path);
    real[length] = '\0';
    if (open_beneath_holds(roots, real))
        return 0;
    return error_set(e, ERR_NOT_ALLOWED,
                     "%s is not in a folder that jobs may use here (%s), or leads out of it by "
                     "a symbolic link",
                     path, roots);
}

/* Resolves the path without opening the file, so that files outside the roots are not touched. */
static int open_place(const char *path, const char *roots, struct error *e)
{
    int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s", path);
    int status = open_beneath_check_place(fd, roots, path, e);
    if (status) {
        close(fd);
        return status;
    }
    return fd;
}

/* Reopens the file by its descriptor, because the path may name another file by now. */
static int open_beneath_reopen(int place, int flags)
{
    char link[32];

    open_beneath_name_link(place, link);
    return open(link, flags);
}

int open_beneath_file(const char *path, struct error *e)
{
    const char *roots = atomic_load(&process_roots);

    if (!roots)
        return file_open(path, e);
    int place = open_place(path, roots, e);
    if (place < 0)
        return place;
    int fd = file_check_regular(place, path, e);
    if (fd == 0 && (fd = open_beneath_reopen(place, O_RDONLY | O_CLOEXEC)) < 0)
        fd = error_set_errno(e, errno, "cannot open %s", path);
    close(place);
    return fd;
}

int open_beneath_folder(const char *path, struct error *e)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    const char *roots = atomic_load(&process_roots);
    int place = roots ? open_place(path, roots, e) : -1;

    if (roots && place < 0)
        return place;
    int fd = roots ? open_beneath_reopen(place, flags) : open(path, flags);
    int reason = errno;
    if (roots)
        close(place);
    return fd >= 0 ? fd : error_set_errno(e, reason, "cannot open the folder %s", path);
}

int open_beneath_stat(const char *path, struct stat *st, struct error *e)
{
    const char *roots = atomic_load(&process_roots);
    int place = roots ? open_place(path, roots, e) : -1;

    if (roots && place < 0)
        return place;
    int status = 0;
    if (roots ? fstat(place, st) : stat(path, st))
        status = error_set_errno(e, errno, "cannot access %s", path);
    if (roots)
        close(place);
    return status;
}
