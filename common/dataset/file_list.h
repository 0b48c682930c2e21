/* Finds the files of a data set without opening them. Internal to common/dataset. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum dataset_format { DATASET_TFRECORD, DATASET_FOLDER, DATASET_SYNTHETIC };
enum dataset_role { DATASET_TRAIN, DATASET_EVAL };

#define DATASET_REMARKS_BYTES 2048

struct dataset_entry {
    uint32_t file; /* index into the list of files */
    int32_t label; /* class folder: 0-based class; TFRecord: -1, as the record contains the label */
    uint64_t offset; /* TFRecord: position of the frame in the file; class folder: 0 */
    uint64_t bytes;  /* size of the payload (the tf.Example, or the image file) */
};

/* If n nodes have different parts of the data, node i has the files s with s % n == i, where s is
 * the number in NAME-%05d-of-%05d of a shard, or the position in the sorted list of other files.
 * {0, 1}: all files. */
struct dataset_part {
    int number, of;
};

struct dataset_list {
    enum dataset_format format;
    enum dataset_role role; /* requested role */
    bool lacks_role;        /* after an error: the folder contains only data of the other role */
    char remarks[DATASET_REMARKS_BYTES]; /* ignored or unusual files, one per line; "": none */
    char *folder; /* contains the shards or class folders: path itself, or a folder of the role's
                     name in it */
    char **files; /* full paths; shards sorted by name, images by class and name */
    uint64_t *bytes;
    int64_t *changed_ns; /* last change of a shard's content; for images 0, see class_changed_ns */
    int32_t *labels;     /* number of the class folder; -1 for shards */
    size_t count, capacity;
    char **classes;            /* names of the class folders, sorted; none for shards */
    int64_t *class_changed_ns; /* last time a file was added to or removed from the class folder */
    int class_count;
};

/*
 * Finds the files of a data set without opening them.
 *
 * Shards are named train-* or validation-*: those of the role are used, or the others if there are
 * none. If some are named NAME-00000-of-00008 (without ending or with .tfrecord), only these are
 * used; all must have the same NAME and total, and none of the part may be missing or duplicate.
 * Otherwise all files are shards except those with the ending of a backup, an index or a text file.
 * Empty shards contain no images.
 *
 * Without shards, each subfolder is a class, except system folders (lost+found). If a folder
 * contains folders named train and validation (or val), or only one of them, that of the role is
 * entered; folders with names of roles are not classes otherwise.
 *
 * Errors as for dataset_open. Free the list with dataset_list_free, also after an error.
 */
int dataset_list(const char *path, enum dataset_role role, struct dataset_list *list,
                 struct error *e);

/* dataset_list in two steps: the first finds class folders without listing their images, which an
 * index may make unnecessary. */
int dataset_list_find(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset_list *list, struct error *e);
int dataset_list_images(struct dataset_list *list, struct error *e);

void dataset_list_note_empty(struct dataset_list *list);

/* Adds an image with class number `label`. Takes ownership of path, also on an error. */
int dataset_list_add(struct dataset_list *list, char *path, uint64_t bytes, int64_t changed_ns,
                     int32_t label, struct error *e);

int dataset_list_node(const struct dataset_list *list, int nodes, uint32_t file);
void dataset_list_free(struct dataset_list *list);

bool dataset_is_image_name(const char *name);
