/* A glance at a data set, for what a plan would warn of: without an index, whatever its size. */
#pragma once

#include <sys/types.h>

#include "common/dataset/dataset.h"

/* What is not known is 0. */
struct dataset_glance {
    int64_t classes;   /* that manifest.json of train-prep lists, or class folders */
    int width, height; /* of the first image */
    dev_t device;      /* of the first file: the same one is the same data */
    ino_t inode;
    char remarks[DATASET_REMARKS_BYTES]; /* as far as no class folder is listed for them */
};

/* Never an error: what cannot be seen is not known. Synthetic data: all 0. */
void dataset_look(const char *path, enum dataset_role role, struct dataset_glance *out);

struct dataset_list;
/* The width and height of a sample of images; 0: they differ, exceed 64 or cannot be seen. */
int64_t dataset_small_size(const struct dataset_list *list);

/* Width and height in the header of a JPEG's or PNG's bytes, which may be cut off behind it. False:
 * none. */
bool dataset_image_size(const uint8_t *image, size_t bytes, int *width, int *height);
