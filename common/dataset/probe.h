/* Examines a data set of any size without an index, for the warnings of a plan. */
#pragma once

#include <sys/types.h>

#include "common/dataset/dataset.h"

struct dataset_probe {
    int64_t classes;   /* from train-prep's manifest.json, or class folders */
    int width, height; /* of the first image */
    dev_t device;      /* of the first file; device and inode identify the data */
    ino_t inode;
    char remarks[DATASET_REMARKS_BYTES]; /* remarks that do not require listing a class folder */
};

/* Never fails; members of unreadable data are set to unknown. */
void dataset_probe(const char *path, enum dataset_role role, struct dataset_probe *out);

struct dataset_list;
/* Width and height of a sample of images; 0: they differ, exceed 64 or are unreadable. */
int64_t dataset_small_size(const struct dataset_list *list);

/* Reads the size from the header of a JPEG or PNG, which may end there. False: it is neither. */
bool dataset_image_size(const uint8_t *image, size_t bytes, int *width, int *height);
