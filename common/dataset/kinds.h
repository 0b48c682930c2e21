/* What data sets consist of: for dataset.h and the files behind it. */
#pragma once

#include <stdint.h>

enum dataset_format { DATASET_TFRECORD, DATASET_FOLDER, DATASET_SYNTHETIC };
enum dataset_role { DATASET_TRAIN, DATASET_EVAL };

#define DATASET_REMARKS_BYTES 2048

/* Where a record lies. */
struct dataset_entry {
    uint32_t file;   /* index into the files */
    int32_t label;   /* folder: 0-based class; TFRecord: -1, the label is in the record */
    uint64_t offset; /* TFRecord: of the frame in the file; folder: 0 */
    uint64_t bytes;  /* of the payload (the tf.Example, or the JPEG file) */
};

/* Of n nodes with copies of their own, node i owns the files s with s % n == i: shards by the
 * number in their names NAME-%05d-of-%05d, other files by their place in the sorted list. {0, 1}:
 * all. */
struct dataset_part {
    int number, of;
};
