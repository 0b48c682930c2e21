/* The files of a data set, found without opening them. Internal to common/dataset. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum dataset_format { DATASET_TFRECORD, DATASET_FOLDER, DATASET_SYNTHETIC };
enum dataset_role { DATASET_TRAIN, DATASET_EVAL };

#define DATASET_REMARKS_BYTES 2048

struct dataset_entry {
    uint32_t file;   /* index into the files */
    int32_t label;   /* folder: 0-based class; TFRecord: -1, the label is in the record */
    uint64_t offset; /* TFRecord: of the frame in the file; folder: 0 */
    uint64_t bytes;  /* of the payload (the tf.Example, or the JPEG file) */
};

/* Of n nodes with their own copies, node i owns the files s with s % n == i: shards by the number
 * in NAME-%05d-of-%05d, other files by position in the sorted list. {0, 1}: all. */
struct dataset_part {
    int number, of;
};

struct dataset_list {
    enum dataset_format format;
    enum dataset_role role; /* that was asked for */
    bool lacks_role;        /* behind an error: the folder holds the data of the other role only */
    char remarks[DATASET_REMARKS_BYTES]; /* lines: what is not read, and what is odd; "": nothing */
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

/*
 * Finds the files of a data set without opening them.
 *
 * Shards are named train-* or validation-*: those of the role, or the others if there are no such.
 * If some are named NAME-00000-of-00008 (with .tfrecord or no ending), these are the set: of one
 * NAME and number, none of the part missing or duplicate; other files are ignored. Otherwise all
 * are shards but those with the ending of a backup, an index or a text. Empty shards hold no
 * images.
 *
 * Else each subfolder is a class, except system folders (lost+found). A folder that holds folders
 * named train and validation (or val), or just one of them, is entered by role; other folders with
 * names of roles are not classes.
 *
 * Errors as dataset_open. Free with dataset_list_free, also after an error.
 */
int dataset_list(const char *path, enum dataset_role role, struct dataset_list *list,
                 struct error *e);

/* In two steps: the first finds class folders without their images, which an index may make
 * unnecessary to list. */
int dataset_list_find(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset_list *list, struct error *e);
int dataset_list_images(struct dataset_list *list, struct error *e);

void dataset_list_note_empty(struct dataset_list *list);

/* Adds an image of class label; takes over path, also on error. */
int dataset_list_add(struct dataset_list *list, char *path, uint64_t bytes, int64_t changed_ns,
                     int32_t label, struct error *e);

int dataset_list_node(const struct dataset_list *list, int nodes, uint32_t file);
void dataset_list_free(struct dataset_list *list);

bool dataset_is_image_name(const char *name);
