/* A data set as a list of images, each with file, position and label. Recognises TFRecord shards
 * (train-* or validation-* by role; 1-based labels, as written by imagenet_to_gcs), class folders
 * of images (numbered in sorted order), and "synthetic". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/file_list.h"
#include "common/digest.h"
#include "common/error.h"

struct dataset;

/* Opens a data set and loads or builds its index. Building it walks the frames and checks the
 * length CRCs; payload CRCs are checked when a record is read. Returns ERR_NOT_FOUND,
 * ERR_NOT_ALLOWED, ERR_INVALID (empty, or of unknown format) or ERR_CORRUPT (a truncated or corrupt
 * frame) with file and offset. */
int dataset_open(const char *path, enum dataset_role role, struct dataset **out, struct error *e);

/* Opens only the images of a part. The index is that of all files on this machine. */
int dataset_open_part(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset **out, struct error *e);
void dataset_close(struct dataset *d); /* accepts NULL */

/* Stores the index that dataset_open has built, for the next dataset_open (index.h); failures are
 * logged. Returns false, without effect, if dataset_open has read it from such a file. */
bool dataset_keep_index(const struct dataset *d);

enum dataset_format dataset_format(const struct dataset *d);
int64_t dataset_images(const struct dataset *d);
const struct dataset_entry *dataset_entry(const struct dataset *d, int64_t i); /* 0 <= i < images */
/* Returns remarks, one per line: ignored files, empty shards, classes without images. "": none. */
const char *dataset_remarks(const struct dataset *d);
const char *dataset_file(const struct dataset *d, uint32_t file);

/* Identifies the data by its index: names and sizes of files and records, labels of class folders.
 * If images are replaced by others of the same sizes, only `changed` differs. */
struct dataset_digest {
    char hex[DIGEST_BYTES];
    int64_t images;
    double changed; /* Unix time of the newest change of a shard or class folder */
};
void dataset_digest(const struct dataset *d, struct dataset_digest *out);

/* Counts images, in total and on the nodes with the fewest and the most (dataset_part): from
 * train-prep's manifest.json if it matches the names and sizes of the shards, otherwise with
 * dataset_open, storing the index. All 0 for synthetic data. */
struct dataset_counts {
    int64_t images, least, most;
    char remarks[DATASET_REMARKS_BYTES]; /* as returned by dataset_remarks */
};
int dataset_count_parts(const char *path, enum dataset_role role, int nodes,
                        struct dataset_counts *counts, struct error *e);

/* An image as stored: the JPEG and its 0-based label, which the caller must check against the
 * number of classes. Thread-safe. *jpeg is valid until dataset_image_release. Files are read, not
 * mapped, so that a file that shrinks or vanishes causes an error instead of a SIGBUS. Returns
 * ERR_CORRUPT (payload CRC, no tf.Example, no image or label, a changed shard), ERR_IO or
 * ERR_NOT_FOUND, with file and offset. */
struct dataset_image {
    const uint8_t *jpeg;
    size_t jpeg_bytes;
    int32_t label;
    char name[128]; /* for messages: file name, or for a shard the record's filename */
    char text[64];  /* for a shard: name of the class as in the record; else "" */
    void *owned;    /* memory to free by dataset_image_release */
};
int dataset_read(struct dataset *d, int64_t i, struct dataset_image *image, struct error *e);
void dataset_image_release(struct dataset_image *image);

void dataset_expect(struct dataset *d, const int64_t *images, int count);
