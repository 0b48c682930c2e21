/* Internal to common/dataset: which files make up a data set. */
#ifndef TRAIND_COMMON_DATASET_LIST_H
#define TRAIND_COMMON_DATASET_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/kinds.h"
#include "common/error.h"

struct dataset_list {
    enum dataset_format format;
    char *folder; /* where the shards or class folders lie: path, or a folder of the role's name in
                     it */
    char **files; /* full paths; shards sorted by name, images sorted by class, then by name */
    uint64_t *bytes;
    int64_t *changed_ns; /* when a shard's content last changed; images: 0, see class_changed_ns */
    int32_t *labels;     /* of the class folder, -1 for shards */
    size_t count, room;
    char **classes;            /* names of the class folders, sorted; none for shards */
    int64_t *class_changed_ns; /* when a file came into the class folder, or left it */
    int class_count;
};

/* Finds the files of a data set without opening them. Shards are files named train-* or
 * validation-*: those of the role, or the others if there are only those; of shards named
 * NAME-%05d-of-%05d none of the part may be missing (the list holds the others too, as far as they
 * are there). Else each subfolder is a class. A folder that holds
 * folders named train and validation (or val), or nothing but one of them, is entered by role.
 * Errors as dataset_open. Free with dataset_list_free, also after an error. */
int dataset_list(const char *path, enum dataset_role role, struct dataset_list *list,
                 struct error *e);

/* The same in two steps: of class folders the first one finds only the folders, so that an index
 * can spare the second, which looks at every image. */
int dataset_list_find(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset_list *list, struct error *e);
int dataset_list_images(struct dataset_list *list, struct error *e);

/* Adds an image of class label; takes path over, also after an error. */
int dataset_list_add(struct dataset_list *list, char *path, uint64_t bytes, int64_t changed_ns,
                     int32_t label, struct error *e);

/* Which of so many nodes owns the file: see struct dataset_part. */
int dataset_list_node(const struct dataset_list *list, int nodes, uint32_t file);
void dataset_list_free(struct dataset_list *list);

/* dataset_digest.c: of a list and its index. */
struct dataset_digest;
void dataset_list_digest(const struct dataset_list *list, const struct dataset_entry *entries,
                         int64_t images, struct dataset_digest *out);

/* Whether a name ends in .jpg or .jpeg, in any case. */
int dataset_is_jpeg_name(const char *name);

#endif
