#include "prep/write/out_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/dataset/manifest.h"
#include "common/system/file.h"
#include "prep/journal.h"

static const char *const role_folders[] = {"train", "validation"};

static bool out_folder_ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static bool out_folder_is_temporary(const char *name)
{
    return name[0] == '.' && out_folder_ends_with(name, ".tmp");
}

bool out_folder_is_shard(const char *name, const char *role)
{
    int number, of, used = 0;
    size_t prefix = strlen(role);
    return strncmp(name, role, prefix) == 0 &&
           sscanf(name + prefix, "-%5d-of-%5d%n", &number, &of, &used) == 2 && used &&
           !name[prefix + (size_t)used];
}

struct cleaning {
    bool force;     /* also finished shards */
    bool keep_ours; /* keep unfinished shards, because there is a journal */
};

/* *other: the first entry that was not written by train-prep. */
static int out_folder_clean_role(const char *path, const char *role,
                                 const struct cleaning *cleaning, char other[PATH_MAX],
                                 struct error *e)
{
    char folder[PATH_MAX], file[PATH_MAX];
    struct dirent *entry;
    DIR *dir;
    int rc = 0;

    file_path(folder, NULL, "%s/%s", path, role);
    dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? 0 : error_set_errno(e, errno, "cannot read %s", folder);
    while (rc == 0 && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (file_path(file, NULL, "%s/%s", folder, name))
            continue;
        bool shard = out_folder_is_shard(name, role) && (cleaning->force || cleaning->keep_ours);
        if (!out_folder_is_temporary(name) && !shard)
            snprintf(other, PATH_MAX, "%s", file);
        else if (!cleaning->keep_ours && unlink(file))
            rc = error_set_errno(e, errno, "cannot remove %s", file);
    }
    closedir(dir);
    return rc;
}

static int out_folder_find_strangers(const char *path, char other[PATH_MAX], struct error *e)
{
    struct dirent *entry;
    DIR *dir = opendir(path);

    if (!dir)
        return error_set_errno(e, errno, "cannot read %s", path);
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;
        bool ours = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                    out_folder_is_temporary(name) || strcmp(name, JOURNAL_NAME) == 0;
        for (int r = 0; r < 2; r++)
            ours = ours || strcmp(name, role_folders[r]) == 0;
        if (!ours)
            snprintf(other, PATH_MAX, "%.2000s/%s", path, name);
    }
    closedir(dir);
    return 0;
}

static int out_folder_make_fresh(const char *path, bool force, struct error *e)
{
    char manifest[PATH_MAX], journal[PATH_MAX], other[PATH_MAX] = "";

    if (file_path(manifest, e, "%s/" MANIFEST_NAME, path) ||
        file_path(journal, e, "%s/" JOURNAL_NAME, path))
        return -ERR_INVALID;
    struct cleaning cleaning = {force, !force && access(journal, F_OK) == 0};
    /* Remove the manifest first, because without it the folder counts as unfinished. */
    if (force && unlink(manifest) && errno != ENOENT)
        return error_set_errno(e, errno, "cannot remove %s", manifest);
    if (force)
        journal_remove(path);
    int rc = force ? 0 : out_folder_find_strangers(path, other, e);
    for (int r = 0; r < 2 && rc == 0; r++)
        rc = out_folder_clean_role(path, role_folders[r], &cleaning, other, e);
    if (rc == 0 && !force && other[0])
        return error_set(e, ERR_CONFLICT,
                         "%s is not empty (%.500s): choose another --out, or use --force to "
                         "replace an earlier conversion",
                         path, other);
    return rc;
}

int out_folder_take(const char *path, bool force, int *fd, struct error *e)
{
    int rc = file_make_dirs(path, e);

    *fd = -1;
    if (rc)
        return rc;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return error_set_errno(e, errno, "cannot open %s", path);
    if (flock(*fd, LOCK_EX | LOCK_NB))
        rc = errno == EWOULDBLOCK
                 ? error_set(e, ERR_CONFLICT, "another train-prep is writing to %s", path)
                 : error_set_errno(e, errno, "cannot lock %s", path);
    if (rc == 0)
        rc = out_folder_make_fresh(path, force, e);
    if (rc) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}
