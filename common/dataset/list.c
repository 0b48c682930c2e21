#include "common/dataset/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/run/progress.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"

/* Names of one folder, sorted bytewise: never in the file system's order, never by locale. */
struct names {
    struct dirent **entries;
    int count;
};

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int list_compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int names_read(const char *folder, struct names *names, struct error *e)
{
    struct stat st;
    int fd = -1, status = open_beneath_stat(folder, &st, e);

    *names = (struct names){0};
    if (status == -ERR_NOT_FOUND)
        return error_set(e, ERR_NOT_FOUND, "there is no data set at %s", folder);
    if (!status && !S_ISDIR(st.st_mode))
        return error_set(e, ERR_INVALID,
                         "%s is a file; give the folder that holds the shards or class folders",
                         folder);
    if (!status && (fd = open_beneath_folder(folder, e)) < 0)
        status = fd;
    if (status)
        return status;
    names->count = scandirat(fd, ".", &names->entries, not_hidden, list_compare_names);
    progress_add(1);
    if (names->count < 0) {
        *names = (struct names){0};
        status = error_set_errno(e, errno, "cannot read the folder %s", folder);
    }
    close(fd);
    return status;
}

static void names_free(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->entries[i]);
    free(names->entries);
}

static char *list_join_path(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool list_is_folder(const char *folder, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    char *path = list_join_path(folder, entry->d_name);
    bool yes = path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return yes;
}

int dataset_list_add(struct dataset_list *list, char *path, uint64_t bytes, int64_t changed_ns,
                     int32_t label, struct error *e)
{
    const struct array arrays[] = {ARRAY(list->files), ARRAY(list->bytes), ARRAY(list->changed_ns),
                                   ARRAY(list->labels)};

    if (!path || !arrays_grow(arrays, 4, list->count, &list->room)) {
        free(path);
        return error_set(e, ERR_NO_MEMORY, "no memory for the list of files in %s", list->folder);
    }
    list->files[list->count] = path;
    list->bytes[list->count] = bytes;
    list->changed_ns[list->count] = changed_ns;
    list->labels[list->count] = label;
    list->count++;
    return 0;
}

static int64_t changed_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int list_file(struct dataset_list *list, const char *folder, const char *name, int32_t label,
                     struct error *e)
{
    struct stat st;
    char *path = list_join_path(folder, name);
    int rc = path ? open_beneath_stat(path, &st, e) : 0;

    if (path && !rc && !S_ISREG(st.st_mode))
        rc = error_set(e, ERR_INVALID, "%s is %s, not a regular file", path, file_kind(st.st_mode));
    if (rc) {
        free(path);
        return rc;
    }
    return dataset_list_add(list, path, (uint64_t)st.st_size, label < 0 ? changed_ns(&st) : 0,
                            label, e);
}

static const char *const prefixes[] = {
    [DATASET_TRAIN] = "train-",
    [DATASET_EVAL] = "validation-",
};

static bool is_shard(const char *folder, const struct dirent *entry, enum dataset_role role)
{
    return strncmp(entry->d_name, prefixes[role], strlen(prefixes[role])) == 0 &&
           !list_is_folder(folder, entry);
}

/* The 3 and the 8 of NAME-00003-of-00008. False: other people's names promise nothing. */
static bool shard_number(const char *path, int *number, int *of)
{
    const char *name = file_base_name(path), *dash = strchr(name, '-');
    int used = 0;

    return dash && sscanf(dash, "-%d-of-%d%n", number, of, &used) == 2 && !dash[used] &&
           *number >= 0 && *number < *of;
}

int dataset_list_node(const struct dataset_list *list, int nodes, uint32_t file)
{
    int number, of;

    if (list->format != DATASET_TFRECORD || !shard_number(list->files[file], &number, &of))
        number = (int)file;
    return number % nodes;
}

/* Of numbered shards all that are the part's must be there, and none of another set. */
static int check_complete(const struct dataset_list *list, enum dataset_role role,
                          struct dataset_part part, struct error *e)
{
    int number, of, total = 0, next = part.number;

    for (size_t i = 0; i < list->count; i++) {
        if (!shard_number(list->files[i], &number, &of))
            return 0;
        total = i == 0 ? of : total;
        if (of != total)
            return error_set(e, ERR_INVALID,
                             "%s holds shards of two data sets: some are of %d, some of %d",
                             list->folder, total, of);
        if (number % part.of != part.number)
            continue;
        if (number != next)
            break;
        next += part.of;
    }
    if (next >= total)
        return 0;
    return error_set(e, ERR_NOT_FOUND, "shard %s%05d-of-%05d is missing in %s%s", prefixes[role],
                     next, total, list->folder,
                     part.of == 1 && role == DATASET_TRAIN
                         ? " (where each node holds its own shards only: data.locality \"node\")"
                         : "");
}

/* Leaves the list empty if the folder holds no shards. */
static int list_shards(const struct names *names, enum dataset_role role, struct dataset_part part,
                       struct dataset_list *list, struct error *e)
{
    enum dataset_role tries[] = {role, role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN};
    int rc = 0;

    for (int t = 0; t < 2 && list->count == 0; t++) {
        for (int i = 0; i < names->count && rc == 0; i++)
            if (is_shard(list->folder, names->entries[i], tries[t]))
                rc = list_file(list, list->folder, names->entries[i]->d_name, -1, e);
        if (rc)
            return rc;
        if (list->count > 0) {
            list->format = DATASET_TFRECORD;
            return check_complete(list, tries[t], part, e);
        }
    }
    return 0;
}

int dataset_is_jpeg_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static int list_class(struct dataset_list *list, int32_t label, struct error *e)
{
    struct names images = {0};
    char *folder = list_join_path(list->folder, list->classes[label]);
    int rc = folder ? names_read(folder, &images, e)
                    : error_set(e, ERR_NO_MEMORY, "no memory for a list of files");

    for (int i = 0; i < images.count && rc == 0; i++) {
        const char *image = images.entries[i]->d_name;
        if (!dataset_is_jpeg_name(image))
            rc = error_set(e, ERR_INVALID,
                           "%s/%s is not a JPEG file: its name should end in .jpg or .jpeg", folder,
                           image);
        else
            rc = list_file(list, folder, image, label, e);
    }
    names_free(&images);
    free(folder);
    return rc;
}

static int no_data_set(const char *folder, struct error *e)
{
    return error_set(e, ERR_INVALID,
                     "%s holds no data set: expected shards named train-* or validation-*, or a "
                     "folder of JPEGs for each class",
                     folder);
}

int dataset_list_images(struct dataset_list *list, struct error *e)
{
    int rc = 0;

    for (int i = 0; i < list->class_count && rc == 0; i++)
        rc = list_class(list, i, e);
    if (rc == 0 && list->count == 0)
        rc = no_data_set(list->folder, e);
    return rc;
}

static int list_classes(const struct names *names, struct dataset_list *list, struct error *e)
{
    size_t room = (size_t)names->count + 1;

    list->format = DATASET_FOLDER;
    list->classes = calloc(room, sizeof *list->classes);
    list->class_changed_ns = calloc(room, sizeof *list->class_changed_ns);
    if (!list->classes || !list->class_changed_ns)
        return error_set(e, ERR_NO_MEMORY, "no memory for %d classes", names->count);
    for (int i = 0; i < names->count; i++) {
        struct stat st;
        if (!list_is_folder(list->folder, names->entries[i]))
            continue;
        char *path = list_join_path(list->folder, names->entries[i]->d_name);
        bool seen = path && stat(path, &st) == 0;
        free(path);
        list->class_changed_ns[list->class_count] = seen ? changed_ns(&st) : 0;
        list->classes[list->class_count] = strdup(names->entries[i]->d_name);
        if (!list->classes[list->class_count++])
            return error_set(e, ERR_NO_MEMORY, "no memory for %d classes", names->count);
    }
    return list->class_count > 0 ? 0 : no_data_set(list->folder, e);
}

static bool is_role_name(const char *name, enum dataset_role role)
{
    if (role == DATASET_TRAIN)
        return strcmp(name, "train") == 0;
    return strcmp(name, "validation") == 0 || strcmp(name, "val") == 0;
}

/* The entry to go into, or NULL. A class may be called "train" too: then other classes stand beside
 * it, but none called "val" or "validation". Beside both, other folders hold something else. */
static const char *role_folder(const char *folder, const struct names *names,
                               enum dataset_role role)
{
    enum dataset_role other = role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN;
    const char *found = NULL;
    bool has_other_role = false, has_more = false;

    for (int i = 0; i < names->count; i++) {
        const char *name = names->entries[i]->d_name;
        if (!list_is_folder(folder, names->entries[i]))
            continue;
        if (is_role_name(name, role))
            found = name;
        else if (is_role_name(name, other))
            has_other_role = true;
        else
            has_more = true;
    }
    return has_more && !has_other_role ? NULL : found;
}

static int list_folder(struct dataset_list *list, enum dataset_role role, struct dataset_part part,
                       bool enter, struct error *e)
{
    struct names names = {0};
    int rc = names_read(list->folder, &names, e);

    if (rc == 0)
        rc = list_shards(&names, role, part, list, e);
    if (rc == 0 && list->count == 0) {
        const char *deeper = enter ? role_folder(list->folder, &names, role) : NULL;
        char *folder = deeper ? list_join_path(list->folder, deeper) : NULL;
        if (folder) {
            free(list->folder);
            list->folder = folder;
            rc = list_folder(list, role, part, false, e);
        } else {
            rc = list_classes(&names, list, e);
        }
    }
    names_free(&names);
    return rc;
}

int dataset_list_find(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset_list *list, struct error *e)
{
    *list = (struct dataset_list){0};
    list->folder = strdup(path);
    if (!list->folder)
        return error_set(e, ERR_NO_MEMORY, "no memory for a path");
    for (size_t end = strlen(list->folder); end > 1 && list->folder[end - 1] == '/'; end--)
        list->folder[end - 1] = '\0';
    return list_folder(list, role, part, true, e);
}

int dataset_list(const char *path, enum dataset_role role, struct dataset_list *list,
                 struct error *e)
{
    int rc = dataset_list_find(path, role, (struct dataset_part){0, 1}, list, e);
    if (rc == 0 && list->format == DATASET_FOLDER)
        rc = dataset_list_images(list, e);
    return rc;
}

void dataset_list_free(struct dataset_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->files[i]);
    for (int i = 0; i < list->class_count; i++)
        free(list->classes[i]);
    free(list->classes);
    free(list->class_changed_ns);
    free(list->changed_ns);
    free(list->files);
    free(list->bytes);
    free(list->labels);
    free(list->folder);
}
