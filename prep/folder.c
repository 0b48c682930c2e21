// Folders of class folders of JPEGs: PATH/train/CLASS and PATH/validation/CLASS, or PATH/CLASS for
// train alone.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "common/dataset/list.h"
#include "common/file.h"
#include "prep/source.h"

#define IMAGE_FILE_LIMIT_BYTES (256u << 20)

struct folder_source {
    struct source base;
    struct dataset_list lists[2]; /* by role */
    int *class_of[2]; /* (classes of the role's list) -> class of the data set; -1: unknown */
};

static int take_classes(struct folder_source *s, const struct dataset_list *train, struct error *e)
{
    struct source_class_list *list = &s->base.classes;

    list->names = calloc((size_t)train->class_count + 1, sizeof *list->names);
    if (!list->names)
        return error_set(e, ERR_NO_MEMORY, "no memory for the names of the classes");
    for (int i = 0; i < train->class_count; i++)
        list->names[list->count++] = strdup(train->classes[i]);
    return 0;
}

static int find_class(const struct source_class_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return i;
    return -1;
}

/* The classes are numbered by the training folder, so that a validation folder that lacks one keeps
 * the numbers. */
static int match_classes(struct folder_source *s, enum dataset_role role, struct error *e)
{
    const struct dataset_list *list = &s->lists[role];

    s->class_of[role] = calloc((size_t)list->class_count + 1, sizeof *s->class_of[role]);
    if (!s->class_of[role])
        return error_set(e, ERR_NO_MEMORY, "no memory for the numbers of the classes");
    for (int i = 0; i < list->class_count; i++) {
        int number = find_class(&s->base.classes, list->classes[i]);
        if (number < 0)
            return error_set(e, ERR_INVALID, "the class %s of %s is not among the training classes",
                             list->classes[i], list->folder);
        s->class_of[role][i] = number;
    }
    return 0;
}

static int open_role(struct folder_source *s, const char *folder, enum dataset_role role,
                     struct error *e)
{
    struct dataset_list *list = &s->lists[role];
    int rc = dataset_list(folder, role, list, e);

    if (rc)
        return rc;
    if (list->format != DATASET_FOLDER)
        return error_set(e, ERR_INVALID, "%s holds TFRecord shards already, not class folders",
                         list->folder);
    s->base.images[role] = (int64_t)list->count;
    rc = role == DATASET_TRAIN ? take_classes(s, list, e) : 0;
    return rc ? rc : match_classes(s, role, e);
}

static int folder_exists(const char *path, const char *name, char out[PATH_MAX])
{
    struct stat st;
    if ((size_t)snprintf(out, PATH_MAX, "%s/%s", path, name) >= PATH_MAX)
        return 0;
    return stat(out, &st) == 0 && S_ISDIR(st.st_mode);
}

static int open_roles(struct folder_source *s, const char *path, struct error *e)
{
    char validation[PATH_MAX];
    int rc = open_role(s, path, DATASET_TRAIN, e);

    if (rc)
        return rc;
    /* dataset_list entered PATH/train only if PATH holds folders of roles, not of classes. */
    if (strncmp(s->lists[DATASET_TRAIN].folder, path, strlen(path)) == 0 &&
        strcmp(s->lists[DATASET_TRAIN].folder + strlen(path), "/train") != 0)
        return 0;
    if (folder_exists(path, "validation", validation) || folder_exists(path, "val", validation))
        return open_role(s, validation, DATASET_EVAL, e);
    return 0;
}

static int folder_read(struct source *base, enum dataset_role role, int64_t i,
                       struct source_image *x, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    const struct dataset_list *list = &s->lists[role];
    const char *path = list->files[i];
    char *bytes;

    int rc = file_read(path, IMAGE_FILE_LIMIT_BYTES, &bytes, &x->file_bytes, e);
    if (rc)
        return rc;
    x->owned = bytes;
    x->file = x->owned;
    x->class = s->class_of[role][list->labels[i]];
    snprintf(x->filename, sizeof x->filename, "%s", strrchr(path, '/') + 1);
    snprintf(x->place, sizeof x->place, "%s", path);
    return 0;
}

/* Names, classes and sizes; where the folder lies makes no difference. */
static uint64_t identify(const struct folder_source *s)
{
    uint64_t hash = 0;

    for (int role = 0; role < 2; role++)
        for (size_t i = 0; i < s->lists[role].count; i++) {
            const struct dataset_list *list = &s->lists[role];
            const char *name = list->files[i] + strlen(list->folder);
            hash = XXH3_64bits_withSeed(name, strlen(name), hash + list->bytes[i]);
        }
    return hash;
}

static void folder_destroy(struct source *base)
{
    struct folder_source *s = (struct folder_source *)base;
    for (int role = 0; role < 2; role++) {
        dataset_list_free(&s->lists[role]);
        free(s->class_of[role]);
    }
    source_classes_free(&base->classes);
    free(s);
}

int source_folder_open(const char *path, const struct source_options *options, struct source **out,
                       struct error *e)
{
    char folder[PATH_MAX];
    struct folder_source *s;

    if (options->pad)
        return error_set(e, ERR_USAGE,
                         "--pad is for --from idx and cifar: here the JPEGs are kept as they are");
    if (options->classes_file)
        return error_set(e, ERR_USAGE,
                         "--classes is for --from idx: here the folders name the classes");
    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder)
        return error_set(e, ERR_INVALID, "the path %s is too long", path);
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--)
        folder[end - 1] = '\0';
    s = calloc(1, sizeof *s);
    if (!s)
        return error_set(e, ERR_NO_MEMORY, "no memory to read %s", path);
    s->base.read = folder_read;
    s->base.destroy = folder_destroy;
    int rc = open_roles(s, folder, e);
    if (rc) {
        folder_destroy(&s->base);
        return rc;
    }
    s->base.identity = identify(s);
    *out = &s->base;
    return 0;
}
