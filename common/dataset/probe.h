/* Looks at a data set of any size without an index, for a plan's warnings. */
#pragma once

#include <sys/types.h>

#include "common/dataset/dataset.h"

struct dataset_probe {
    int64_t classes;   /* of train-prep's manifest.json, or class folders */
    int width, height; /* of the first image */
    dev_t device;      /* of the first file: equal for the same data */
    ino_t inode;
    char remarks[DATASET_REMARKS_BYTES]; /* those that need no listing of a class folder */
};

/* Never fails: unreadable means not known. */
void dataset_probe(const char *path, enum dataset_role role, struct dataset_probe *out);

struct dataset_list;
/* The common width and height of a sample of images; 0: they differ, exceed 64 or are
 * unreadable. */
int64_t dataset_small_size(const struct dataset_list *list);

/* From the header of a JPEG or PNG, which may be cut off after it. False: none. */
bool dataset_image_size(const uint8_t *image, size_t bytes, int *width, int *height);
