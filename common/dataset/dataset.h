/*
 * A data set as a list of images: which file, where in it, which label. Recognises TFRecord
 * shards (train-* or validation-* by role; labels 1-based, as imagenet_to_gcs writes them), class
 * folders of JPEGs (classes numbered in sorted order), and "synthetic".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/file_list.h"
#include "common/digest.h"
#include "common/error.h"

struct dataset;

/* Opens path and makes or takes over its index. Making it walks the frames and checks the length
 * CRCs; payload CRCs are checked when a record is read. Errors name file and offset: ERR_NOT_FOUND,
 * ERR_NOT_ALLOWED, ERR_INVALID (empty, or no known format), ERR_CORRUPT (a truncated or corrupt
 * frame). */
int dataset_open(const char *path, enum dataset_role role, struct dataset **out, struct error *e);

/* The same for the images of a part; the index is that of all files that are there. */
int dataset_open_part(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset **out, struct error *e);
void dataset_close(struct dataset *d); /* NULL is fine */

/* Keeps the index for the next dataset_open (see index.h), if that had to make it. At best: a
 * failure is only logged. */
void dataset_keep_index(const struct dataset *d);
bool dataset_index_was_kept(const struct dataset *d); /* dataset_open found it */

enum dataset_format dataset_format(const struct dataset *d);
int64_t dataset_images(const struct dataset *d);
const struct dataset_entry *dataset_entry(const struct dataset *d, int64_t i); /* 0 <= i < images */
/* Lines, one for each thing that is not wrong and yet should be known: what lies there and is not
 * read, shards of 0 bytes, classes without images. "": none. */
const char *dataset_remarks(const struct dataset *d);
const char *dataset_file(const struct dataset *d, uint32_t file);

/* Which data these are, by the index of all files that are there: names and sizes of the files and
 * records, and labels of class folders. Images that were replaced by others of the same sizes show
 * in `changed` alone. */
struct dataset_digest {
    char hex[DIGEST_BYTES];
    int64_t images;
    double changed; /* Unix time: when the newest shard or class folder was */
};
void dataset_digest(const struct dataset *d, struct dataset_digest *out);

/* Only counts the images, shared out over nodes by dataset_part: from a manifest.json of train-prep
 * beside the shards when it fits them (file names and sizes), else by dataset_open, whose index is
 * kept. Synthetic: all 0, the caller chooses. least and most: of the node with the fewest and the
 * most. */
struct dataset_counts {
    int64_t images, least, most;
    char remarks[DATASET_REMARKS_BYTES]; /* as dataset_remarks */
};
int dataset_count_parts(const char *path, enum dataset_role role, int nodes,
                        struct dataset_counts *counts, struct error *e);

/* One image as stored: the JPEG's bytes and its 0-based label (in [0, classes) is for the caller to
 * check). Thread-safe. *jpeg lives until dataset_image_release. Files are read, not mapped: one
 * that shrinks, vanishes or changes while it is in use is an error that names it, never a SIGBUS.
 * Errors name file and offset: ERR_CORRUPT (payload CRC, no tf.Example, no image or label in it, a
 * shard that has another size than when it was opened), ERR_IO, ERR_NOT_FOUND. */
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

/* These images will be read soon: lets the kernel fetch them meanwhile. */
void dataset_expect(struct dataset *d, const int64_t *images, int count);
