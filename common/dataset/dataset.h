/*
 * A data set as a list of images: which file, where in it, which label. Recognises TFRecord
 * shards (train-* or validation-* by role; labels 1-based, as imagenet_to_gcs writes them), class
 * folders of JPEGs (classes numbered in sorted order), and "synthetic".
 */
#ifndef TRAIND_COMMON_DATASET_DATASET_H
#define TRAIND_COMMON_DATASET_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum dataset_format { DATASET_TFRECORD, DATASET_FOLDER, DATASET_SYNTHETIC };
enum dataset_role { DATASET_TRAIN, DATASET_EVAL };

/* Where a record lies. */
struct dataset_entry {
    uint32_t file;   /* index into the files */
    int32_t label;   /* folder: 0-based class; TFRecord: -1, the label is in the record */
    uint64_t offset; /* TFRecord: of the frame in the file; folder: 0 */
    uint64_t bytes;  /* of the payload (the tf.Example, or the JPEG file) */
};

struct dataset;

/* Opens and indexes path. Frames are walked and the length CRCs checked; payload CRCs when a record
 * is read. Errors name file and offset: ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_INVALID (empty, or no
 * known format), ERR_CORRUPT (a truncated or corrupt frame). */
int dataset_open(const char *path, enum dataset_role role, struct dataset **out, struct error *e);
void dataset_close(struct dataset *d); /* NULL is fine */

enum dataset_format dataset_format(const struct dataset *d);
int64_t dataset_images(const struct dataset *d);
const struct dataset_entry *dataset_entry(const struct dataset *d, int64_t i); /* 0 <= i < images */
const char *dataset_file(const struct dataset *d, uint32_t file);

/* Only counts the images: from a manifest.json of train-prep beside the shards when it fits them
 * (file names and sizes), else by dataset_open. Synthetic: *images = 0, the caller chooses. */
int dataset_count(const char *path, enum dataset_role role, int64_t *images, struct error *e);

/* One image as stored: the JPEG's bytes and its 0-based label (in [0, classes) is for the caller to
 * check). Thread-safe. *jpeg lives until dataset_image_release (and no longer than the data set:
 * shards are memory-mapped, files of class folders are read). Errors name file and offset:
 * ERR_CORRUPT (payload CRC, no tf.Example, no image or label in it), ERR_IO, ERR_NOT_FOUND. */
struct dataset_image {
    const uint8_t *jpeg;
    size_t jpeg_bytes;
    int32_t label;
    char name[128]; /* for messages: the record's filename, or the file's */
    char text[64];  /* TFRecord: the class in words, as the record has it; else "" */
    void *owned;    /* for dataset_image_release */
};
int dataset_read(struct dataset *d, int64_t i, struct dataset_image *image, struct error *e);
void dataset_image_release(struct dataset_image *image);

#endif
