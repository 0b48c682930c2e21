#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/file.h"
#include "tests/fuzz/fuzz.h"

static char folder[PATH_MAX];
static pid_t owner;

_Noreturn void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s:%d: not so: %s: ", file, line, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

static void fuzz_remove_folder(void)
{
    if (getpid() == owner)
        file_remove_tree(folder, NULL);
}

const char *fuzz_folder(void)
{
    const char *below = getenv("FUZZ_FOLDER");

    if (*folder)
        return folder;
    if (!below)
        below = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(folder, sizeof folder, "%s/traind-fuzz.XXXXXX", below);
    FUZZ_CHECK(mkdtemp(folder), "no folder %s can be made", folder);
    owner = getpid();
    atexit(fuzz_remove_folder);
    return folder;
}

const char *fuzz_file(const char *name, const void *data, size_t bytes)
{
    static char path[PATH_MAX + 128];

    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    FILE *out = fopen(path, "wb");
    FUZZ_CHECK(out && fwrite(data, 1, bytes, out) == bytes && fclose(out) == 0, "cannot write %s",
               path);
    return path;
}

char *fuzz_text(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);

    FUZZ_CHECK(text, "no memory");
    if (bytes)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    return text;
}
