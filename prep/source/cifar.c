/* CIFAR-10 and CIFAR-100 in their binary version (https://www.cs.toronto.edu/~kriz/cifar.html). A
 * record is the label (in CIFAR-100 the coarse and the fine one, of which the latter is used), then
 * 1024 bytes each of red, green and blue. Reads the downloaded archive or the folder in it. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "common/system/file.h"
#include "prep/source/archive.h"
#include "prep/source/source.h"

#define SIDE        32
#define PLANE       (SIDE * SIDE)
#define LIMIT_BYTES (256u << 20) /* per file; the largest one, of CIFAR-100, has 154 MB */

/* The two data sets differ in names and in the bytes before the pixels. */
static const struct cifar_set {
    const char *archive, *folder, *names;
    const char *train[6]; /* terminated by NULL */
    const char *test;
    int label_bytes; /* the last of these bytes is the label */
} sets[] = {
    {"cifar-10-binary.tar.gz",
     "cifar-10-batches-bin", "batches.meta.txt",
     {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
      "data_batch_5.bin", NULL},
     "test_batch.bin", 1},
    {"cifar-100-binary.tar.gz",
     "cifar-100-binary",     "fine_label_names.txt",
     {"train.bin", NULL},
     "test.bin",       2},
};
#define FILES_MAX 7 /* per data set */

struct cifar_source {
    struct source base;
    uint8_t *pixels[2]; /* indexed by role: (images, side, side, 3) */
    uint8_t *labels[2]; /* (images) */
    int side;           /* including the border */
};

static int cifar_add_records(struct cifar_source *s, enum dataset_role role,
                             const struct cifar_set *set, const struct archive_blob *blob,
                             int64_t *at, struct error *e)
{
    size_t record = (size_t)set->label_bytes + 3 * PLANE;
    const uint8_t *in = (const uint8_t *)blob->data;

    for (size_t i = 0; i < blob->bytes / record; i++, in += record, ++*at) {
        uint8_t *out = s->pixels[role] + *at * 3 * PLANE, label = in[set->label_bytes - 1];
        if (label >= s->base.classes.count)
            return error_set(e, ERR_INVALID,
                             "record %zu of %s has the label %d; with the %d classes of %s it "
                             "should be 0 to %d",
                             i, blob->name, label, s->base.classes.count, set->names,
                             s->base.classes.count - 1);
        s->labels[role][*at] = label;
        for (size_t p = 0; p < PLANE; p++)
            for (size_t c = 0; c < 3; c++)
                out[3 * p + c] = in[(size_t)set->label_bytes + c * PLANE + p];
    }
    return 0;
}

static int cifar_add_role(struct cifar_source *s, enum dataset_role role,
                          const struct cifar_set *set, const struct archive_blob *blobs,
                          size_t count, const char *path, struct error *e)
{
    size_t record = (size_t)set->label_bytes + 3 * PLANE;
    int64_t images = 0, at = 0;

    for (size_t i = 0; i < count; i++) {
        if (!blobs[i].data)
            return error_set(e, ERR_NOT_FOUND, "there is no %s in %s", blobs[i].name, path);
        if (blobs[i].bytes % record || blobs[i].bytes == 0)
            return error_set(e, ERR_CORRUPT,
                             "%s in %s is truncated: %zu bytes is not a multiple of %zu",
                             blobs[i].name, path, blobs[i].bytes, record);
        images += (int64_t)(blobs[i].bytes / record);
    }
    s->base.images[role] = images;
    s->pixels[role] = malloc((size_t)images * 3 * PLANE);
    s->labels[role] = malloc((size_t)images);
    if (!s->pixels[role] || !s->labels[role])
        return error_set(e, ERR_NO_MEMORY, "no memory for %" PRId64 " images", images);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = cifar_add_records(s, role, set, &blobs[i], &at, e);
    return rc;
}

static int cifar_add_set(struct cifar_source *s, const struct cifar_set *set,
                         struct archive_blob *blobs, size_t trains, const char *path,
                         struct error *e)
{
    if (!blobs[0].data)
        return error_set(e, ERR_NOT_FOUND, "there is no %s in %s", set->names, path);
    int rc = source_classes_split(blobs[0].data, &s->base.classes, e);
    if (rc == 0)
        rc = cifar_add_role(s, DATASET_TRAIN, set, blobs + 2, trains, path, e);
    if (rc == 0)
        rc = cifar_add_role(s, DATASET_EVAL, set, blobs + 1, 1, path, e);
    return rc;
}

static int cifar_read_set(struct cifar_source *s, const struct cifar_set *set, const char *path,
                          struct error *e)
{
    struct archive_blob blobs[FILES_MAX] = {{.name = set->names}, {.name = set->test}};
    size_t trains = 0;

    for (; set->train[trains]; trains++)
        blobs[2 + trains].name = set->train[trains];
    int rc = archive_pick(path, blobs, 2 + trains, LIMIT_BYTES, e);
    if (rc == 0)
        rc = cifar_add_set(s, set, blobs, trains, path, e);
    archive_blobs_free(blobs, 2 + trains);
    return rc;
}

/* Looks for the archive and the folder in it, at the path or in it. */
static int cifar_find_set(const char *path, char where[PATH_MAX], const struct cifar_set **set,
                          struct error *e)
{
    const char *name = file_base_name(path);

    if (access(path, F_OK))
        return error_set(e, ERR_NOT_FOUND, "there is no %s", path);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        *set = &sets[i];
        file_path(where, NULL, "%s", path);
        if (strcmp(name, sets[i].archive) == 0)
            return 0;
        file_path(where, NULL, "%s/%s", path, sets[i].test);
        if (access(where, F_OK) == 0) {
            file_path(where, NULL, "%s", path);
            return 0;
        }
        file_path(where, NULL, "%s/%s", path, sets[i].folder);
        if (access(where, F_OK) == 0)
            return 0;
        file_path(where, NULL, "%s/%s", path, sets[i].archive);
        if (access(where, F_OK) == 0)
            return 0;
    }
    return error_set(e, ERR_NOT_FOUND,
                     "%s is not CIFAR: expected %s or %s, the folder in it, or a folder that holds "
                     "one of these",
                     path, sets[0].archive, sets[1].archive);
}

static int cifar_read(struct source *base, enum dataset_role role, int64_t i,
                      struct source_image *x, struct error *e)
{
    struct cifar_source *s = (struct cifar_source *)base;
    const char *name = role == DATASET_TRAIN ? "train" : "test";

    (void)e;
    x->width = x->height = s->side;
    x->channels = 3;
    x->pixels = s->pixels[role] + i * 3 * s->side * s->side;
    x->class = s->labels[role][i];
    snprintf(x->filename, sizeof x->filename, "%s-%06" PRId64 ".jpg", name, i);
    snprintf(x->place, sizeof x->place, "%s image %" PRId64, name, i);
    return 0;
}

static void cifar_close(struct source *base)
{
    struct cifar_source *s = (struct cifar_source *)base;
    for (int role = 0; role < 2; role++) {
        free(s->pixels[role]);
        free(s->labels[role]);
    }
}

static void cifar_identify(struct cifar_source *s)
{
    for (int role = 0; role < 2; role++) {
        size_t n = (size_t)s->base.images[role];
        s->base.identity = XXH3_64bits_withSeed(s->labels[role], n, s->base.identity);
        s->base.identity = XXH3_64bits_withSeed(s->pixels[role], n * 3 * PLANE, s->base.identity);
    }
}

static int cifar_open(struct source *base, const char *path, const struct source_options *options,
                      struct error *e)
{
    struct cifar_source *s = (struct cifar_source *)base;
    const struct cifar_set *set;
    char where[PATH_MAX];

    if (options->classes_file)
        return error_set(e, ERR_USAGE, "--classes is for --from idx only: CIFAR has class names");
    int rc = cifar_find_set(path, where, &set, e);
    s->side = SIDE + 2 * options->pad;
    if (rc == 0)
        rc = cifar_read_set(s, set, where, e);
    if (rc == 0)
        cifar_identify(s);
    for (int role = 0; role < 2 && rc == 0; role++)
        rc = source_pad(&s->pixels[role], s->base.images[role], SIDE, SIDE, 3, options->pad, e);
    return rc;
}

const struct source_kind source_cifar = {"cifar", sizeof(struct cifar_source), cifar_open,
                                         cifar_read, cifar_close};
