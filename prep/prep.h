/* train-prep's commands. Each returns 0 or a negative error code with *e filled. */
#ifndef TRAIND_PREP_PREP_H
#define TRAIND_PREP_PREP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/error.h"

struct convert_options {
    const char *from; /* imagenet, folder, idx, cifar */
    const char *in, *out;
    const char *classes_file; /* NULL: none */
    int pad;                  /* idx, cifar: rows and columns of black around each image */
    int resize;               /* the short side of larger images; 0: as they are */
    int quality;              /* of resized JPEGs */
    int threads;
    int shards;
    int eval_shards; /* 0: an eighth of shards, at least 1 */
    int64_t seed;
    bool force; /* replace what an earlier conversion left in out */
};

/* Writes out/train/train-%05d-of-%05d, out/validation/validation-%05d-of-%05d and, last,
 * out/manifest.json (common/dataset/manifest.h). The order is a shuffle of all images of a role by
 * seed; shard sizes differ by at most one. All is written under temporary names and renamed at the
 * end. What a run that was interrupted or failed has finished, the next one with the same options
 * keeps; the result has the same bytes. ERR_CONFLICT if out holds other data, an unfinished
 * conversion with other options, or is being written by another process. */
int convert(const struct convert_options *o, struct error *e);

struct show_options {
    const char *dir;
    enum dataset_role role;
    int64_t limit; /* 0: all */
    bool json;     /* one object a line */
};
int show(const struct show_options *o, struct error *e);

struct extract_options {
    const char *dir, *out;
    enum dataset_role role;
    int64_t limit; /* 0: all */
};

/* Writes out/000000042-NAME.jpg for record 42; refuses to overwrite. */
int extract(const struct extract_options *o, struct error *e);

/* Set by SIGINT and SIGTERM; the commands stop at the next image with ERR_INTERRUPTED. */
extern volatile int prep_interrupted;

#endif
