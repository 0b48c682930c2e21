/* Folders of class folders with JPEG and PNG files: PATH/train/CLASS and PATH/validation/CLASS, or
 * PATH/CLASS for training data only. PATH/validation may also contain the images themselves, with
 * synset_labels.txt in PATH. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "common/dataset/file_list.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "prep/work.h"
#include "prep/source/imagenet_truth.h"
#include "prep/source/source.h"

#define IMAGE_FILE_LIMIT_BYTES (256u << 20)

struct folder_source {
    struct source base;
    struct dataset_list lists[2];
    int *class_of[2]; /* (classes of the role's list) -> class of the data set; -1: unknown */
};

/* Uses the numbers of the training folder, because a validation folder may lack classes. */
static int folder_match_classes(struct folder_source *s, enum dataset_role role, struct error *e)
{
    const struct dataset_list *list = &s->lists[role];

    s->class_of[role] = xcalloc((size_t)list->class_count + 1, sizeof *s->class_of[role]);
    for (int i = 0; i < list->class_count; i++) {
        int number = source_classes_find(&s->base.classes, list->classes[i]);
        if (number < 0)
            return error_set(e, ERR_INVALID, "the class %s of %s is not among the training classes",
                             list->classes[i], list->folder);
        s->class_of[role][i] = number;
    }
    return 0;
}

static int folder_open_role(struct folder_source *s, const char *folder, enum dataset_role role,
                            struct error *e)
{
    struct dataset_list *list = &s->lists[role];
    int rc = dataset_list(folder, role, list, e);

    if (rc)
        return rc;
    progress_warn(list->remarks);
    if (list->format != DATASET_FOLDER)
        return error_set(e, ERR_INVALID, "%s holds TFRecord shards already, not class folders",
                         list->folder);
    s->base.images[role] = (int64_t)list->count;
    for (int i = 0; role == DATASET_TRAIN && i < list->class_count; i++)
        source_classes_add(&s->base.classes, list->classes[i], strlen(list->classes[i]));
    return folder_match_classes(s, role, e);
}

static int folder_exists(const char *path, const char *name, char out[PATH_MAX])
{
    struct stat st;

    file_path(out, NULL, "%s/%s", path, name);
    return stat(out, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- a validation folder without class folders: "raw data" of imagenet_to_gcs */

static int folder_images_only(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && dataset_is_image_name(entry->d_name);
}

static int folder_compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int folder_add_flat(struct folder_source *s, const char *name, const char *synset,
                           const char *source, struct error *e)
{
    struct dataset_list *list = &s->lists[DATASET_EVAL];
    int class = source_classes_find(&s->base.classes, synset);
    char *path = NULL;
    struct stat st;

    if (class < 0)
        return error_set(e, ERR_INVALID,
                         "%s assigns %s to class %s, which the training folder does not have",
                         source, name, synset);
    path = xasprintf("%s/%s", list->folder, name);
    if (stat(path, &st) || !S_ISREG(st.st_mode)) {
        error_set(e, ERR_INVALID, "%s is not a regular file", path);
        free(path);
        return -ERR_INVALID;
    }
    return dataset_list_add(list, path, (uint64_t)st.st_size, 0, class, e);
}

/* The labels are in the order of the file names. */
static int folder_label_flat(struct folder_source *s, const char *path, struct dirent **names,
                             int count, struct error *e)
{
    struct dataset_list *list = &s->lists[DATASET_EVAL];
    struct imagenet_truth truth;
    int rc = imagenet_truth_read(path, &truth, e);

    if (rc == 0 && !truth.source[0])
        rc = error_set(
            e, ERR_NOT_FOUND,
            "%s contains images without class folders, and their classes are not known: put "
            "synset_labels.txt (one synset per line, in the order of the file names) into %s",
            list->folder, path);
    if (rc == 0 && truth.images != count)
        rc = error_set(e, ERR_INVALID, "%s holds %d images, but %s has %lld labels", list->folder,
                       count, truth.source, (long long)truth.images);
    for (int i = 0; i < count && rc == 0; i++)
        rc = folder_add_flat(s, names[i]->d_name, truth.synsets[i], truth.source, e);
    imagenet_truth_free(&truth);
    return rc;
}

static int folder_open_flat(struct folder_source *s, const char *path, const char *validation,
                            struct dirent **names, int count, struct error *e)
{
    struct dataset_list *list = &s->lists[DATASET_EVAL];
    int classes = s->base.classes.count;

    list->format = DATASET_FOLDER;
    list->folder = xstrdup(validation);
    s->class_of[DATASET_EVAL] = xcalloc((size_t)classes + 1, sizeof **s->class_of);
    for (int i = 0; i < classes; i++)
        s->class_of[DATASET_EVAL][i] = i;
    int rc = folder_label_flat(s, path, names, count, e);
    s->base.images[DATASET_EVAL] = (int64_t)list->count;
    return rc;
}

static int folder_open_validation(struct folder_source *s, const char *path, const char *validation,
                                  struct error *e)
{
    struct dirent **names;
    int count = scandir(validation, &names, folder_images_only, folder_compare_names);
    int rc = count > 0 ? folder_open_flat(s, path, validation, names, count, e)
                       : folder_open_role(s, validation, DATASET_EVAL, e);

    for (int i = 0; i < count; i++)
        free(names[i]);
    if (count >= 0)
        free(names);
    return rc;
}

static int folder_open_roles(struct folder_source *s, const char *path, struct error *e)
{
    char validation[PATH_MAX];
    int rc = folder_open_role(s, path, DATASET_TRAIN, e);

    if (rc)
        return rc;
    /* dataset_list enters PATH/train only if PATH contains folders of roles. */
    if (strncmp(s->lists[DATASET_TRAIN].folder, path, strlen(path)) == 0 &&
        strcmp(s->lists[DATASET_TRAIN].folder + strlen(path), "/train") != 0)
        return 0;
    if (folder_exists(path, "validation", validation) || folder_exists(path, "val", validation))
        return folder_open_validation(s, path, validation, e);
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
    snprintf(x->filename, sizeof x->filename, "%s", file_base_name(path));
    snprintf(x->place, sizeof x->place, "%s", path);
    return 0;
}

/* Hashes names, classes and sizes, but not the location. */
static uint64_t folder_identify(const struct folder_source *s)
{
    uint64_t hash = 0;

    for (int role = 0; role < 2; role++)
        for (size_t i = 0; i < s->lists[role].count; i++) {
            const struct dataset_list *list = &s->lists[role];
            const char *name = list->files[i] + strlen(list->folder);
            hash = XXH3_64bits_withSeed(name, strlen(name), hash + list->bytes[i]);
            hash = XXH3_64bits_withSeed(&s->class_of[role][list->labels[i]], sizeof(int), hash);
        }
    return hash;
}

static void folder_close(struct source *base)
{
    struct folder_source *s = (struct folder_source *)base;
    for (int role = 0; role < 2; role++) {
        dataset_list_free(&s->lists[role]);
        free(s->class_of[role]);
    }
}

static int folder_open(struct source *base, const char *path, const struct source_options *options,
                       struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    char folder[PATH_MAX];

    if (options->pad)
        return error_set(e, ERR_USAGE, "--pad is for --from idx and cifar only: JPEGs are copied");
    if (options->classes_file)
        return error_set(e, ERR_USAGE,
                         "--classes is for --from idx only: folders name the classes");
    if (file_path(folder, e, "%s", path))
        return -ERR_INVALID;
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--)
        folder[end - 1] = '\0';
    int rc = folder_open_roles(s, folder, e);
    if (rc == 0)
        base->identity = folder_identify(s);
    return rc;
}

const struct source_kind source_folder = {"folder", sizeof(struct folder_source), folder_open,
                                          folder_read, folder_close};
