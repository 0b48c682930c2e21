/* A quick look at a data set of any size without an index, for a plan's warnings. */
#pragma once

#include <sys/types.h>

#include "common/dataset/dataset.h"

/* 0: not known. */
struct dataset_probe {
    int64_t classes;   /* of train-prep's manifest.json, or class folders */
    int width, height; /* of the first image */
    dev_t device;      /* of the first file: equal for the same data */
    ino_t inode;
    char remarks[DATASET_REMARKS_BYTES]; /* those that need no listing of a class folder */
};

/* Never fails: what cannot be read is not known. Synthetic data: all 0. */
void dataset_probe(const char *path, enum dataset_role role, struct dataset_probe *out);

struct dataset_list;
/* The common width and height of a sample of images; 0: they differ, exceed 64 or cannot be read.
 */
int64_t dataset_small_size(const struct dataset_list *list);

/* Width and height from the header of a JPEG or PNG, which may be cut off after it. False: none. */
bool dataset_image_size(const uint8_t *image, size_t bytes, int *width, int *height);
