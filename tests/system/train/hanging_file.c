/*
 * For LD_PRELOAD: opening a file whose path ends with $HANG_FILE takes as long as the file
 * $HANG_NOW is there, as on a file server that does not answer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);

static void wait_for(const char *path)
{
    const char *file = getenv("HANG_FILE"), *now = getenv("HANG_NOW");
    size_t length = strlen(path), end = file ? strlen(file) : 0;

    while (file && now && end <= length && strcmp(path + length - end, file) == 0 &&
           access(now, F_OK) == 0)
        usleep(10000);
}

static int open_real(const char *path, int flags, mode_t mode)
{
    static int (*next)(const char *, int, ...);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "open64");
    wait_for(path);
    return next(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    return open_real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    return open_real(path, flags, mode);
}
