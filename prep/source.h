/* Where train-prep takes labelled images from. A source of a new kind is one file and one row in
 * source.c's table. */
#ifndef TRAIND_PREP_SOURCE_H
#define TRAIND_PREP_SOURCE_H

#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/error.h"
#include "common/tf_example.h"

struct source_class_list {
    char **names;
    int count;
};

struct source {
    int64_t images[2]; /* by enum dataset_role; 0 if the source has none of a role */
    struct source_class_list classes;
    /* Fills *x for image i of a role; the pointers in it are good until the next call. */
    int (*read)(struct source *s, enum dataset_role role, int64_t i, struct tf_example *x,
                struct error *e);
    void (*destroy)(struct source *s);
};

/* What some kinds want to be told; a kind refuses what it has no use for. */
struct source_options {
    const char *classes_file; /* idx: names of the classes, one a line; NULL: "0", "1", ... */
    int pad;                  /* idx: rows and columns of black (0) around each image */
};

int source_open(const char *kind, const char *path, const struct source_options *options,
                struct source **out, struct error *e);
void source_destroy(struct source *s); /* NULL is fine */

int source_idx_open(const char *path, const struct source_options *options, struct source **out,
                    struct error *e);
int source_folder_open(const char *path, const struct source_options *options, struct source **out,
                       struct error *e);

/* For the kinds: reads the names of a file, and frees a list. */
int source_classes_read(const char *file, struct source_class_list *list, struct error *e);
void source_classes_free(struct source_class_list *list);

#endif
