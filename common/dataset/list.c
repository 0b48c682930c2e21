#include "common/dataset/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Names of one folder, sorted bytewise: never in the file system's order, never by locale. */
struct names {
    struct dirent **entries;
    int count;
};

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int names_read(const char *folder, struct names *names, struct error *e)
{
    names->count = scandir(folder, &names->entries, not_hidden, by_bytes);
    if (names->count >= 0)
        return 0;
    names->entries = NULL;
    names->count = 0;
    if (errno == ENOTDIR)
        return error_set(e, ERR_INVALID,
                         "%s is a file; give the folder that holds the shards or class folders",
                         folder);
    if (errno == ENOENT)
        return error_set(e, ERR_NOT_FOUND, "there is no data set at %s", folder);
    return error_set_errno(e, errno, "cannot read the folder %s", folder);
}

static void names_free(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->entries[i]);
    free(names->entries);
}

static char *join(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool is_folder(const char *folder, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    char *path = join(folder, entry->d_name);
    bool yes = path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return yes;
}

/* Grows the three arrays together. */
static int list_reserve(struct dataset_list *list)
{
    size_t room = list->room ? 2 * list->room : 64;
    char **files = realloc(list->files, room * sizeof *files);
    if (files)
        list->files = files;
    uint64_t *bytes = realloc(list->bytes, room * sizeof *bytes);
    if (bytes)
        list->bytes = bytes;
    int32_t *labels = realloc(list->labels, room * sizeof *labels);
    if (labels)
        list->labels = labels;
    if (!files || !bytes || !labels)
        return -1;
    list->room = room;
    return 0;
}

static int list_add(struct dataset_list *list, const char *folder, const char *name, int32_t label,
                    struct error *e)
{
    struct stat st;
    char *path = join(folder, name);

    if (!path || (list->count == list->room && list_reserve(list))) {
        free(path);
        return error_set(e, ERR_NO_MEMORY, "no memory for the list of files in %s", folder);
    }
    list->files[list->count] = path; /* owned by the list from here on */
    list->labels[list->count] = label;
    list->count++;
    if (stat(path, &st))
        return error_set_errno(e, errno, "cannot look at %s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERR_INVALID, "%s is not a regular file", path);
    list->bytes[list->count - 1] = (uint64_t)st.st_size;
    return 0;
}

static const char *const prefixes[] = {
    [DATASET_TRAIN] = "train-",
    [DATASET_EVAL] = "validation-",
};

static bool is_shard(const char *folder, const struct dirent *entry, enum dataset_role role)
{
    return strncmp(entry->d_name, prefixes[role], strlen(prefixes[role])) == 0 &&
           !is_folder(folder, entry);
}

/* Of shards named NAME-00003-of-00008 all eight must be there, and no others. */
static int check_complete(const struct dataset_list *list, enum dataset_role role, struct error *e)
{
    int total = 0;

    for (size_t i = 0; i < list->count; i++) {
        const char *name = strrchr(list->files[i], '/') + 1 + strlen(prefixes[role]);
        int number, of, used = 0;
        if (sscanf(name, "%d-of-%d%n", &number, &of, &used) != 2 || name[used] || of < 1)
            return 0; /* other people's names promise nothing */
        if (i == 0)
            total = of;
        if (of != total)
            return error_set(e, ERR_INVALID,
                             "%s holds shards of two data sets: some are of %d, some of %d",
                             list->folder, total, of);
        if (number != (int)i)
            return error_set(e, ERR_NOT_FOUND, "shard %s%05d-of-%05d is missing in %s",
                             prefixes[role], (int)i, total, list->folder);
    }
    if (list->count < (size_t)total)
        return error_set(e, ERR_NOT_FOUND, "shard %s%05d-of-%05d is missing in %s", prefixes[role],
                         (int)list->count, total, list->folder);
    return 0;
}

/* Leaves the list empty if the folder holds no shards. */
static int list_shards(const struct names *names, enum dataset_role role, struct dataset_list *list,
                       struct error *e)
{
    enum dataset_role tries[] = {role, role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN};
    int rc = 0;

    for (int t = 0; t < 2 && list->count == 0; t++) {
        for (int i = 0; i < names->count && rc == 0; i++)
            if (is_shard(list->folder, names->entries[i], tries[t]))
                rc = list_add(list, list->folder, names->entries[i]->d_name, -1, e);
        if (rc)
            return rc;
        if (list->count > 0) {
            list->format = DATASET_TFRECORD;
            return check_complete(list, tries[t], e);
        }
    }
    return 0;
}

int dataset_is_jpeg_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static int list_class(struct dataset_list *list, const char *name, int32_t label, struct error *e)
{
    struct names images = {0};
    char *folder = join(list->folder, name);
    int rc = folder ? names_read(folder, &images, e)
                    : error_set(e, ERR_NO_MEMORY, "no memory for a list of files");

    for (int i = 0; i < images.count && rc == 0; i++) {
        const char *image = images.entries[i]->d_name;
        if (!dataset_is_jpeg_name(image))
            rc = error_set(e, ERR_INVALID,
                           "%s/%s is not a JPEG file: its name should end in .jpg or .jpeg", folder,
                           image);
        else
            rc = list_add(list, folder, image, label, e);
    }
    names_free(&images);
    free(folder);
    return rc;
}

static int list_classes(const struct names *names, struct dataset_list *list, struct error *e)
{
    int rc = 0;

    list->format = DATASET_FOLDER;
    list->classes = calloc((size_t)names->count + 1, sizeof *list->classes);
    if (!list->classes)
        return error_set(e, ERR_NO_MEMORY, "no memory for %d classes", names->count);
    for (int i = 0; i < names->count && rc == 0; i++) {
        const char *name = names->entries[i]->d_name;
        if (!is_folder(list->folder, names->entries[i]))
            continue;
        list->classes[list->class_count] = strdup(name);
        rc = list_class(list, name, list->class_count, e);
        list->class_count++;
    }
    if (rc == 0 && list->count == 0)
        return error_set(
            e, ERR_INVALID,
            "%s holds no data set: expected shards named train-* or validation-*, or a "
            "folder of JPEGs for each class",
            list->folder);
    return rc;
}

static bool is_role_name(const char *name, enum dataset_role role)
{
    if (role == DATASET_TRAIN)
        return strcmp(name, "train") == 0;
    return strcmp(name, "validation") == 0 || strcmp(name, "val") == 0;
}

/* The entry to go into, or NULL. A class may be called "train" too: then other classes stand beside
 * it. */
static const char *role_folder(const char *folder, const struct names *names,
                               enum dataset_role role)
{
    const char *found = NULL;
    for (int i = 0; i < names->count; i++) {
        const char *name = names->entries[i]->d_name;
        if (!is_folder(folder, names->entries[i]))
            continue;
        if (is_role_name(name, role))
            found = name;
        else if (!is_role_name(name, role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN))
            return NULL;
    }
    return found;
}

static int list_folder(struct dataset_list *list, enum dataset_role role, bool enter,
                       struct error *e)
{
    struct names names = {0};
    int rc = names_read(list->folder, &names, e);

    if (rc == 0)
        rc = list_shards(&names, role, list, e);
    if (rc == 0 && list->count == 0) {
        const char *deeper = enter ? role_folder(list->folder, &names, role) : NULL;
        char *folder = deeper ? join(list->folder, deeper) : NULL;
        if (folder) {
            free(list->folder);
            list->folder = folder;
            rc = list_folder(list, role, false, e);
        } else {
            rc = list_classes(&names, list, e);
        }
    }
    names_free(&names);
    return rc;
}

int dataset_list(const char *path, enum dataset_role role, struct dataset_list *list,
                 struct error *e)
{
    *list = (struct dataset_list){0};
    list->folder = strdup(path);
    if (!list->folder)
        return error_set(e, ERR_NO_MEMORY, "no memory for a path");
    for (size_t end = strlen(list->folder); end > 1 && list->folder[end - 1] == '/'; end--)
        list->folder[end - 1] = '\0';
    return list_folder(list, role, true, e);
}

void dataset_list_free(struct dataset_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->files[i]);
    for (int i = 0; i < list->class_count; i++)
        free(list->classes[i]);
    free(list->classes);
    free(list->files);
    free(list->bytes);
    free(list->labels);
    free(list->folder);
}
