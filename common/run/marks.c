#include "common/run/marks.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/system/file.h"

static bool mark_path(const char *attempt_dir, const char *name, char path[PATH_MAX])
{
    return (size_t)snprintf(path, PATH_MAX, "%s/%s", attempt_dir, name) < PATH_MAX;
}

int mark_write(const char *attempt_dir, const char *name, struct error *e)
{
    char path[PATH_MAX];

    if (!mark_path(attempt_dir, name, path))
        return error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
    return file_write_atomic(path, "", 0, e);
}

bool mark_is_there(const char *attempt_dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    return mark_path(attempt_dir, name, path) && stat(path, &st) == 0;
}

bool mark_is_filled(const char *attempt_dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    return mark_path(attempt_dir, name, path) && stat(path, &st) == 0 && st.st_size > 0;
}
