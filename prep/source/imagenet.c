/* ImageNet (ILSVRC2012) as downloaded. ILSVRC2012_img_train.tar contains a tar for each class,
 * n01440764.tar, which contains n01440764_10026.JPEG and so on. ILSVRC2012_img_val.tar contains
 * ILSVRC2012_val_00000001.JPEG and so on, whose classes are in another file (imagenet_truth.h).
 * Nothing is unpacked to disk: a first pass records the offset of each image, and then any thread
 * can read any image. The index of 1.3 million images takes 60 MB. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "common/buffer.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "prep/prep.h"
#include "prep/work.h"
#include "prep/source/archive.h"
#include "prep/source/imagenet_truth.h"
#include "prep/source/source.h"

#define IMAGE_BYTES_MAX (256u << 20)

static const char *const tar_names[] = {
    [DATASET_TRAIN] = "ILSVRC2012_img_train.tar", [DATASET_EVAL] = "ILSVRC2012_img_val.tar"};

struct entry {
    uint64_t offset; /* of the content in the tar */
    uint32_t bytes;
    int32_t class;
    uint64_t name; /* offset in `names` */
};

struct tar {
    int fd;
    char path[PATH_MAX];
    const uint8_t *map; /* mapped while the tar is indexed */
    uint64_t bytes;
    struct entry *entries;
    int64_t count;
    size_t capacity;
    char *names; /* NUL-terminated names */
    size_t names_used, names_room;
};

struct imagenet_source {
    struct source base;
    struct tar tars[2]; /* indexed by role */
};

static int imagenet_tar_reserve(struct tar *t, size_t name_bytes, struct error *e)
{
    struct entry *entries =
        array_grow(t->entries, (size_t)t->count, &t->capacity, sizeof *t->entries);
    if (entries)
        t->entries = entries;
    char *names = array_reserve(t->names, t->names_used + name_bytes, &t->names_room, 1);
    if (names)
        t->names = names;
    if (!entries || !names)
        return error_set(e, ERR_NO_MEMORY, "no memory to index %s", t->path);
    return 0;
}

static int imagenet_add_entry(struct tar *t, const struct archive_member *m, int class,
                              struct error *e)
{
    size_t name_bytes = strlen(m->name) + 1;

    if (m->bytes > IMAGE_BYTES_MAX)
        return error_set(e, ERR_TOO_LARGE, "%s: %s in it is %" PRIu64 " bytes; the limit is %u",
                         t->path, m->name, m->bytes, IMAGE_BYTES_MAX);
    int rc = imagenet_tar_reserve(t, name_bytes, e);
    if (rc)
        return rc;
    memcpy(t->names + t->names_used, m->name, name_bytes);
    t->entries[t->count++] = (struct entry){m->offset, (uint32_t)m->bytes, class, t->names_used};
    t->names_used += name_bytes;
    return 0;
}

static int imagenet_by_class_and_name(const void *a, const void *b, void *names)
{
    const struct entry *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    int order = strcmp((const char *)names + x->name, (const char *)names + y->name);
    return order ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

static void imagenet_sort_entries(struct tar *t)
{
    if (t->count)
        qsort_r(t->entries, (size_t)t->count, sizeof *t->entries, imagenet_by_class_and_name,
                t->names);
}

static int imagenet_open_tar(struct tar *t, const char *folder, enum dataset_role role,
                             struct error *e)
{
    struct stat st;

    snprintf(t->path, sizeof t->path, "%.3900s/%s", folder, tar_names[role]);
    t->fd = file_open(t->path, e);
    if (t->fd < 0)
        return t->fd;
    if (fstat(t->fd, &st) || st.st_size == 0)
        return error_set(e, ERR_CORRUPT, "%s is empty", t->path);
    t->bytes = (uint64_t)st.st_size;
    t->map = mmap(NULL, t->bytes, PROT_READ, MAP_SHARED, t->fd, 0);
    if (t->map == MAP_FAILED) {
        t->map = NULL;
        return error_set_errno(e, errno, "cannot map %s", t->path);
    }
    madvise((void *)t->map, t->bytes, MADV_RANDOM); /* headers are far apart */
    return 0;
}

static void imagenet_unmap(struct tar *t)
{
    if (t->map)
        munmap((void *)t->map, t->bytes);
    t->map = NULL;
}

static int imagenet_by_name(const void *a, const void *b)
{
    return strcmp(((const struct archive_member *)a)->name,
                  ((const struct archive_member *)b)->name);
}

/* Adds the class of a member such as "n01440764.tar". */
static int imagenet_take_class(struct source_class_list *list, const struct tar *t,
                               const struct archive_member *m, struct error *e)
{
    size_t length = strlen(m->name);

    if (length < 5 || strcmp(m->name + length - 4, ".tar") != 0)
        return error_set(e, ERR_INVALID,
                         "%s holds %s; expected a tar for each class, as n01440764.tar", t->path,
                         m->name);
    if (list->count && strlen(list->names[list->count - 1]) == length - 4 &&
        strncmp(list->names[list->count - 1], m->name, length - 4) == 0)
        return error_set(e, ERR_INVALID, "%s holds %s twice", t->path, m->name);
    source_classes_add(list, m->name, length - 4);
    return 0;
}

/* Unmaps what was read: the pages of 1.3 million headers would take 5 GB of memory. */
static void imagenet_forget_pages(const struct tar *t, uint64_t offset, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = offset - offset % page;
    madvise((void *)(t->map + start), offset + bytes - start, MADV_DONTNEED);
}

static int imagenet_index_class(struct tar *t, const struct archive_member *m, int class,
                                struct error *e)
{
    struct archive_index images;
    char name[PATH_MAX + 64];

    snprintf(name, sizeof name, "%s, %.40s", t->path, m->name);
    int rc = archive_index(t->map, m->offset, m->bytes, name, &images, e);
    for (size_t i = 0; i < images.count && rc == 0; i++)
        rc = imagenet_add_entry(t, &images.members[i], class, e);
    archive_index_free(&images);
    imagenet_forget_pages(t, m->offset, m->bytes);
    return rc;
}

/* Classes are numbered in the order of their names. */
static int imagenet_index_train(struct imagenet_source *s, struct error *e)
{
    struct tar *t = &s->tars[DATASET_TRAIN];
    struct source_class_list *list = &s->base.classes;
    struct archive_index classes;
    struct progress progress;

    int rc = archive_index(t->map, 0, t->bytes, t->path, &classes, e);
    if (rc == 0 && classes.count)
        qsort(classes.members, classes.count, sizeof *classes.members, imagenet_by_name);
    progress_begin(&progress, "index", 0, (int64_t)t->bytes);
    for (size_t i = 0; i < classes.count && rc == 0; i++) {
        rc = prep_interrupted ? error_set(e, ERR_INTERRUPTED, "interrupted") : 0;
        if (rc == 0)
            rc = imagenet_take_class(list, t, &classes.members[i], e);
        if (rc == 0)
            rc = imagenet_index_class(t, &classes.members[i], (int)i, e);
        progress_add(&progress, 0, (int64_t)classes.members[i].bytes);
    }
    progress_end(&progress);
    archive_index_free(&classes);
    if (rc == 0 && t->count == 0)
        rc = error_set(e, ERR_INVALID, "%s holds no images", t->path);
    imagenet_sort_entries(t);
    return rc;
}

/* ---- validation: a tar of images, and their labels */

static int imagenet_by_synset(const void *synset, const void *name)
{
    return strcmp(synset, *(char *const *)name);
}

static int imagenet_find_class(const struct source_class_list *list, const char *synset)
{
    char **found =
        bsearch(synset, list->names, (size_t)list->count, sizeof *list->names, imagenet_by_synset);

    return found ? (int)(found - list->names) : -1;
}

static int imagenet_add_validation(struct imagenet_source *s, const struct imagenet_truth *truth,
                                   const struct archive_member *m, struct error *e)
{
    struct tar *t = &s->tars[DATASET_EVAL];
    int64_t number;
    int used = 0;

    if (sscanf(m->name, "ILSVRC2012_val_%8" SCNd64 ".JPEG%n", &number, &used) != 1 || !used ||
        m->name[used])
        return error_set(e, ERR_INVALID, "%s holds %s; expected ILSVRC2012_val_00000001.JPEG",
                         t->path, m->name);
    if (number < 1 || number > truth->images || !truth->synsets[number - 1][0])
        return error_set(e, ERR_INVALID, "%s has no label for %s: it has %" PRId64 " labels",
                         truth->source, m->name, truth->images);
    int class = imagenet_find_class(&s->base.classes, truth->synsets[number - 1]);
    if (class < 0)
        return error_set(e, ERR_INVALID, "%s assigns %s to class %s, which %s does not have",
                         truth->source, m->name, truth->synsets[number - 1],
                         tar_names[DATASET_TRAIN]);
    return imagenet_add_entry(t, m, class, e);
}

static int imagenet_index_validation(struct imagenet_source *s, const struct imagenet_truth *truth,
                                     struct error *e)
{
    struct tar *t = &s->tars[DATASET_EVAL];
    struct archive_index images;

    if (!truth->source[0])
        return error_set(
            e, ERR_NOT_FOUND,
            "the classes of the images in %s are not known: put ILSVRC2012_devkit_t12.tar.gz, "
            "LOC_val_solution.csv or imagenet_2012_validation_synset_labels.txt (or "
            "synset_labels.txt) beside it",
            t->path);
    int rc = archive_index(t->map, 0, t->bytes, t->path, &images, e);
    for (size_t i = 0; i < images.count && rc == 0; i++)
        rc = imagenet_add_validation(s, truth, &images.members[i], e);
    archive_index_free(&images);
    if (rc == 0 && t->count != truth->images)
        rc = error_set(e, ERR_INVALID, "%s holds %" PRId64 " images, but %s has %" PRId64 " labels",
                       t->path, t->count, truth->source, truth->images);
    imagenet_sort_entries(t);
    return rc;
}

static void imagenet_name_classes(struct source_class_list *list,
                                  const struct imagenet_truth *truth)
{
    if (truth->word_count == 0)
        return;
    list->texts = xcalloc((size_t)list->count + 1, sizeof *list->texts);
    for (int i = 0; i < list->count; i++) {
        const char *text = imagenet_truth_text(truth, list->names[i]);
        list->texts[i] = xstrdup(text ? text : list->names[i]);
    }
}

static uint64_t imagenet_identify(const struct tar *t, uint64_t hash)
{
    for (int64_t i = 0; i < t->count; i++) {
        const struct entry *x = &t->entries[i];
        const char *name = t->names + x->name;
        hash = XXH3_64bits_withSeed(name, strlen(name), hash);
        uint64_t numbers[] = {x->offset, x->bytes, (uint64_t)x->class};
        hash = XXH3_64bits_withSeed(numbers, sizeof numbers, hash);
    }
    return hash;
}

static int imagenet_read(struct source *base, enum dataset_role role, int64_t i,
                         struct source_image *x, struct error *e)
{
    struct imagenet_source *s = (struct imagenet_source *)base;
    const struct tar *t = &s->tars[role];
    const struct entry *entry = &t->entries[i];
    const char *name = t->names + entry->name;
    uint8_t *bytes = malloc((size_t)entry->bytes + 1);

    x->owned = bytes;
    if (!bytes)
        return error_set(e, ERR_NO_MEMORY, "no memory for %s", name);
    for (size_t done = 0; done < entry->bytes;) {
        ssize_t got =
            pread(t->fd, bytes + done, entry->bytes - done, (off_t)(entry->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? error_set_errno(e, errno, "cannot read %s of %s", name, t->path)
                           : error_set(e, ERR_CORRUPT, "%s has become shorter", t->path);
        done += (size_t)got;
    }
    x->file = bytes;
    x->file_bytes = entry->bytes;
    x->class = entry->class;
    snprintf(x->filename, sizeof x->filename, "%s", name);
    snprintf(x->place, sizeof x->place, "%.380s, %.100s", t->path, name);
    return 0;
}

static void imagenet_close(struct source *base)
{
    struct imagenet_source *s = (struct imagenet_source *)base;
    for (int role = 0; role < 2; role++) {
        struct tar *t = &s->tars[role];
        imagenet_unmap(t);
        if (t->fd >= 0)
            close(t->fd);
        free(t->entries);
        free(t->names);
    }
}

static int imagenet_open_all(struct imagenet_source *s, const char *folder, struct error *e)
{
    struct imagenet_truth truth = {0};

    int rc = imagenet_open_tar(&s->tars[DATASET_TRAIN], folder, DATASET_TRAIN, e);
    if (rc == 0)
        rc = imagenet_truth_read(folder, &truth, e);
    if (rc == 0)
        rc = imagenet_index_train(s, e);
    if (rc == 0)
        imagenet_name_classes(&s->base.classes, &truth);
    if (rc == 0) {
        rc = imagenet_open_tar(&s->tars[DATASET_EVAL], folder, DATASET_EVAL, e);
        if (rc == 0)
            rc = imagenet_index_validation(s, &truth, e);
        else if (rc == -ERR_NOT_FOUND) /* the validation tar is optional */
            rc = 0;
    }
    imagenet_truth_free(&truth);
    return rc;
}

static int imagenet_open(struct source *base, const char *path,
                         const struct source_options *options, struct error *e)
{
    struct imagenet_source *s = (struct imagenet_source *)base;

    s->tars[DATASET_TRAIN].fd = s->tars[DATASET_EVAL].fd = -1;
    if (options->pad || options->classes_file)
        return error_set(e, ERR_USAGE, "--%s cannot be used with --from imagenet",
                         options->pad ? "pad" : "classes");
    int rc = imagenet_open_all(s, path, e);
    for (int role = 0; role < 2 && rc == 0; role++) {
        imagenet_unmap(&s->tars[role]);
        base->images[role] = s->tars[role].count;
        base->identity = imagenet_identify(&s->tars[role], base->identity);
    }
    return rc;
}

const struct source_kind source_imagenet = {"imagenet", sizeof(struct imagenet_source),
                                            imagenet_open, imagenet_read, imagenet_close};
