/* A data set as a list of images: file, position, label. Recognises TFRecord shards (train-* or
 * validation-* by role; labels 1-based, as from imagenet_to_gcs), class folders of JPEGs (numbered
 * in sorted order), and "synthetic". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/file_list.h"
#include "common/digest.h"
#include "common/error.h"

struct dataset;

/* Opens path and loads or makes its index, which walks the frames and checks the length CRCs;
 * payload CRCs are checked when a record is read. ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_INVALID
 * (empty, or of unknown format), ERR_CORRUPT (a truncated or corrupt frame), naming file and
 * offset. */
int dataset_open(const char *path, enum dataset_role role, struct dataset **out, struct error *e);

/* Only the images of a part; the index is that of all files here. */
int dataset_open_part(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset **out, struct error *e);
void dataset_close(struct dataset *d); /* NULL is fine */

/* Stores an index made by dataset_open for the next one (index.h). Failures are logged. */
void dataset_keep_index(const struct dataset *d);
bool dataset_index_was_kept(const struct dataset *d); /* dataset_open found it */

enum dataset_format dataset_format(const struct dataset *d);
int64_t dataset_images(const struct dataset *d);
const struct dataset_entry *dataset_entry(const struct dataset *d, int64_t i); /* 0 <= i < images */
/* Remarks, one per line: files not read, empty shards, classes without images. "": none. */
const char *dataset_remarks(const struct dataset *d);
const char *dataset_file(const struct dataset *d, uint32_t file);

/* Identifies the data by the index: names and sizes of files and records, labels of class folders.
 * Images replaced by others of the same sizes show in `changed` only. */
struct dataset_digest {
    char hex[DIGEST_BYTES];
    int64_t images;
    double changed; /* Unix time: when the newest shard or class folder was */
};
void dataset_digest(const struct dataset *d, struct dataset_digest *out);

/* Counts images, and the fewest and most of a node (dataset_part): from train-prep's manifest.json
 * if it fits the shards (names and sizes), else by dataset_open, keeping the index. Synthetic: all
 * 0. */
struct dataset_counts {
    int64_t images, least, most;
    char remarks[DATASET_REMARKS_BYTES]; /* as dataset_remarks */
};
int dataset_count_parts(const char *path, enum dataset_role role, int nodes,
                        struct dataset_counts *counts, struct error *e);

/* An image as stored: the JPEG and its 0-based label, which the caller must check against the
 * number of classes. Thread-safe. *jpeg lives until dataset_image_release. Files are read, not
 * mapped, so that a file that shrinks or vanishes is an error and not a SIGBUS. ERR_CORRUPT
 * (payload CRC, no tf.Example, no image or label, a shard that has changed), ERR_IO, ERR_NOT_FOUND,
 * naming file and offset. */
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

void dataset_expect(struct dataset *d, const int64_t *images, int count);
