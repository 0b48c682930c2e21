/* Sources of labelled images. A new kind needs a file and a row of the table in source.c. */
#pragma once

#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/error.h"

struct source_class_list {
    char **names; /* (count): names of the classes in files, for example "n01440764" */
    char **texts; /* (count): descriptions, for example "tench, Tinca tinca"; NULL: same as the
                     names */
    int count;
    size_t capacity; /* of names */
};

struct source_image {
    const uint8_t *file; /* JPEG or PNG; NULL: pixels is set */
    size_t file_bytes;
    const uint8_t *pixels; /* (height, width, channels), channels 1 (grey) or 3 (RGB) */
    int width, height, channels;
    int class; /* 0 <= class < classes.count */
    char filename[128];
    char place[512]; /* for messages: the file, or the archive and the file in it */
    void *owned;     /* memory to free by source_image_release */
};

struct source {
    const struct source_kind *kind;
    int64_t images[2]; /* indexed by enum dataset_role; 0 if the source has no images of the role */
    struct source_class_list classes;
    uint64_t
        identity; /* hash of everything that determines the images: names, sizes, labels, pixels */
};

/* Options of some kinds; the others refuse them */
struct source_options {
    const char *classes_file; /* idx: file with a class name per line; NULL: "0", "1", ... */
    int pad; /* idx, cifar: width of the black border around each image, in pixels */
};

struct source_kind {
    const char *name;
    size_t bytes; /* size of its struct, whose first member is a struct source */
    /* s is zeroed except for kind. source_destroy closes it even after an error. */
    int (*open)(struct source *s, const char *path, const struct source_options *options,
                struct error *e);
    /* Thread-safe. The bytes are valid until source_image_release. */
    int (*read)(struct source *s, enum dataset_role role, int64_t i, struct source_image *x,
                struct error *e);
    void (*close)(struct source *s); /* frees the members of this kind */
};

int source_open(const char *kind, const char *path, const struct source_options *options,
                struct source **out, struct error *e);
void source_destroy(struct source *s); /* accepts NULL */
void source_image_release(struct source_image *x);

extern const struct source_kind source_idx, source_folder, source_imagenet, source_cifar;

/* Replaces *pixels (n, h, w, channels) by (n, h + 2 pad, w + 2 pad, channels). NULL stays NULL. */
int source_pad(uint8_t **pixels, int64_t n, int height, int width, int channels, int pad,
               struct error *e);
/* Read class names, one per line, from a file, or from a text, which is modified. */
int source_classes_read(const char *file, struct source_class_list *list, struct error *e);
int source_classes_split(char *text, struct source_class_list *list, struct error *e);
void source_classes_add(struct source_class_list *list, const char *name, size_t bytes);
int source_classes_find(const struct source_class_list *list, const char *name); /* -1: not found */
