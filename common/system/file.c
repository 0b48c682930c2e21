#include "common/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/system/content.h"
#include "common/clock.h"

#define WALKS_MAX 100 /* restarts of a walk through a tree that other processes remove too */

static int file_read_all(int fd, size_t limit, char **text, size_t *bytes)
{
    struct buffer b = BUFFER(SIZE_MAX / 2);
    int reason = 0;
    ssize_t n = 1;

    while (n && !reason) {
        if (!buffer_reserve(&b, 1 << 16))
            reason = ENOMEM;
        else if ((n = read(fd, b.data + b.bytes, b.capacity - b.bytes - 1)) < 0)
            reason = errno == EINTR ? 0 : errno;
        else if ((b.bytes += (size_t)n) > limit)
            reason = EFBIG;
    }
    if (reason) {
        buffer_clear(&b);
        return reason;
    }
    b.data[b.bytes] = '\0';
    *text = buffer_take(&b, bytes);
    return 0;
}

const char *file_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a folder";
    case S_IFIFO:
        return "a named pipe";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

int file_check_regular(int fd, const char *path, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st))
        return error_set_errno(e, errno, "cannot access %s", path);
    if (S_ISREG(st.st_mode))
        return 0;
    return error_set(e, ERR_INVALID, "%s is %s, not a regular file", path, file_kind(st.st_mode));
}

int file_open(const char *path, struct error *e)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && errno == ENXIO) /* the file is a socket */
        return error_set(e, ERR_INVALID, "%s is a socket or device, not a regular file", path);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s", path);
    int status = file_check_regular(fd, path, e);
    if (status) {
        close(fd);
        return status;
    }
    return fd;
}

static bool file_is_descriptor(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0 ||
           strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0;
}

static const char *file_words(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

int file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, struct error *e)
{
    int fd = strcmp(path, "-") == 0     ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
             : file_is_descriptor(path) ? open(path, O_RDONLY | O_CLOEXEC)
                                        : file_open(path, e);

    if (fd < 0 && file_is_descriptor(path))
        return error_set_errno(e, errno, "cannot open %s", file_words(path));
    return fd < 0 ? fd : file_read_fd(fd, path, limit_bytes, text, bytes, e);
}

int file_read_fd(int fd, const char *path, size_t limit_bytes, char **text, size_t *bytes,
                 struct error *e)
{
    int reason = file_read_all(fd, limit_bytes, text, bytes);

    close(fd);
    if (reason == EFBIG)
        return error_set(e, ERR_TOO_LARGE, "%s is larger than %zu bytes", file_words(path),
                         limit_bytes);
    if (reason == EBADF) /* stdin was closed; file_refuse_closed_streams opened it write-only */
        return error_set(e, ERR_IO, "%s is closed, so nothing can be read from it",
                         file_words(path));
    if (reason)
        return error_set_errno(e, reason, "cannot read %s", file_words(path));
    return 0;
}

int file_read_text(const char *path, size_t limit_bytes, char **text, size_t *bytes,
                   struct error *e)
{
    int status = file_read(path, limit_bytes, text, bytes, e);

    if (status || content_drop_mark(*text, bytes, e) == 0)
        return status;
    free(*text);
    *text = NULL;
    return error_prefix(e, "%s", file_words(path));
}

int file_write_all(int fd, const void *data, size_t bytes)
{
    for (const char *rest = data; bytes > 0;) {
        ssize_t n = write(fd, rest, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        rest += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int file_path(char path[PATH_MAX], struct error *e, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(path, PATH_MAX, format, args);
    va_end(args);
    if (length >= 0 && length < PATH_MAX)
        return 0;
    error_set(e, ERR_INVALID, "the path %.200s... is too long", path);
    *path = '\0';
    return -ERR_INVALID;
}

const char *file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void file_sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

void file_sync_dir_of(const char *path)
{
    char copy[PATH_MAX];

    file_path(copy, NULL, "%s", path);
    file_sync_dir(dirname(copy));
}

enum write_way {
    WRITE_SYNCED = 1, /* the data is on disk when the call returns */
    WRITE_FIRST = 2
};

static int file_put_in_place(int folder, const char *temporary, const char *path, int ways)
{
    if (ways & WRITE_FIRST) {
        if (linkat(folder, temporary, folder, path, 0) == 0 || errno == EEXIST)
            return unlinkat(folder, temporary, 0);
        if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
            return -1;
    }
    return renameat(folder, temporary, folder, path);
}

static int file_write_and_rename(int folder, const char *path, const void *data, size_t bytes,
                                 int ways, mode_t mode, struct error *e)
{
    static atomic_uint serial; /* distinguishes threads that write the same file at once */
    char temporary[PATH_MAX];
    if (file_path(temporary, e, "%s.tmp.%ld.%u", path, (long)getpid(), serial++))
        return -ERR_INVALID;
    /* Never write through a symbolic link. */
    unlinkat(folder, temporary, 0);
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot create %s", temporary);
    int failed = file_write_all(fd, data, bytes) || ((ways & WRITE_SYNCED) && fsync(fd));
    int reason = errno;
    if (close(fd) && !failed) {
        failed = 1;
        reason = errno;
    }
    if (!failed && file_put_in_place(folder, temporary, path, ways)) {
        failed = 1;
        reason = errno;
    }
    if (failed) {
        unlinkat(folder, temporary, 0);
        return error_set_errno(e, reason, "cannot write %s", path);
    }
    if ((ways & WRITE_SYNCED) && folder == AT_FDCWD)
        file_sync_dir_of(path);
    else if (ways & WRITE_SYNCED)
        fsync(folder);
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t bytes, struct error *e)
{
    return file_write_and_rename(AT_FDCWD, path, data, bytes, WRITE_SYNCED, 0644, e);
}

int file_write_atomic_in(int folder, const char *name, const void *data, size_t bytes,
                         struct error *e)
{
    return file_write_and_rename(folder, name, data, bytes, WRITE_SYNCED, 0644, e);
}

int file_write_secret(const char *path, const void *data, size_t bytes, struct error *e)
{
    return file_write_and_rename(AT_FDCWD, path, data, bytes, WRITE_SYNCED, 0600, e);
}

int file_write_first(const char *path, const void *data, size_t bytes, struct error *e)
{
    return file_write_and_rename(AT_FDCWD, path, data, bytes, WRITE_SYNCED | WRITE_FIRST, 0644, e);
}

int file_write_unsynced(const char *path, const void *data, size_t bytes, struct error *e)
{
    return file_write_and_rename(AT_FDCWD, path, data, bytes, 0, 0644, e);
}

static int file_make_parents(const char *path, bool synced, struct error *e)
{
    char copy[PATH_MAX];
    if (file_path(copy, e, "%s", path))
        return -ERR_INVALID;
    for (char *slash = copy + 1;; slash++) {
        slash = strchr(slash, '/');
        if (slash)
            *slash = '\0';
        bool made = mkdir(copy, 0755) == 0;
        if (!made && errno != EEXIST)
            return error_set_errno(e, errno, "cannot create the folder %s", copy);
        if (made && synced)
            file_sync_dir_of(copy);
        if (!slash)
            break;
        *slash = '/';
    }
    struct stat st;
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return error_set(e, ERR_INVALID, "%s exists and is not a folder", path);
    return 0;
}

int file_make_dirs(const char *path, struct error *e)
{
    return file_make_parents(path, true, e);
}

int file_make_dirs_unsynced(const char *path, struct error *e)
{
    return file_make_parents(path, false, e);
}

static _Thread_local double remove_until; /* deadline of the current walk */

/* Succeeds if another process has removed the entry already. */
static int file_remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    if (remove(path) && errno != ENOENT)
        return -1;
    return walk->level > 0 && clock_monotonic() > remove_until;
}

int file_remove_tree_until(const char *path, double until, struct error *e)
{
    struct stat st;
    int reason = 0, walked;

    remove_until = until;

    /* nftw fails if a folder vanishes before it is opened; restart it on what is left. */
    for (int i = 0; i < WALKS_MAX; i++) {
        if ((walked = nftw(path, file_remove_entry, 16, FTW_DEPTH | FTW_PHYS)) >= 0)
            return walked;
        reason = errno;
        if (reason != ENOENT)
            break;
        if (lstat(path, &st) && errno == ENOENT)
            return 0;
    }
    return error_set_errno(e, reason, "cannot remove %s", path);
}

int file_remove_tree(const char *path, struct error *e)
{
    return file_remove_tree_until(path, INFINITY, e);
}

static _Thread_local int64_t tree_bytes; /* sum of the current walk */

static int file_count_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)path;
    (void)walk;
    if (type == FTW_F)
        tree_bytes += st->st_size;
    return 0;
}

int64_t file_tree_bytes(const char *path)
{
    tree_bytes = 0;
    nftw(path, file_count_entry, 16, FTW_PHYS);
    return tree_bytes;
}

bool file_cache_folder(char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache && *cache == '/')
        return !file_path(path, NULL, "%s/traind", cache);
    return home && *home == '/' && !file_path(path, NULL, "%s/.cache/traind", home);
}

void file_refuse_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            errno == EBADF) /* open() then returns this number, the lowest free one */
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}
