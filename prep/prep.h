/* train-prep's commands. Each returns 0 or a negative error code with *e filled. */
#pragma once

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
    bool json;  /* tell what was made as one object */
};

/* Writes out/train/train-%05d-of-%05d, out/validation/validation-%05d-of-%05d and, last,
 * out/manifest.json (common/dataset/manifest.h). The order is a shuffle of all images of a role by
 * seed; shard sizes differ by at most one. All is written under temporary names and renamed at the
 * end. What a run that was interrupted or failed has finished, the next one with the same options
 * keeps; the result has the same bytes. ERR_CONFLICT if out holds other data, an unfinished
 * conversion with other options, or is being written by another process. */
int convert(const struct convert_options *o, struct error *e);

/* Records of a data set, by their numbers in file order and by class. */
struct record_choice {
    enum dataset_role role;
    int64_t first, last; /* both included */
    bool to_end;         /* instead of last */
    bool any_class;
    int32_t class; /* counted from 0 */
    int64_t limit; /* of those that are left; 0: all */
};

struct show_options {
    const char *dir;
    struct record_choice choice;
    bool json; /* one object a line */
};
int show(const struct show_options *o, struct error *e);

struct extract_options {
    const char *dir, *out;
    struct record_choice choice;
    bool json; /* one object a line: each file */
};

/* Writes out/000000042-NAME.jpg for record 42; refuses to overwrite. */
int extract(const struct extract_options *o, struct error *e);

struct audit_options {
    const char *dir;  /* of convert's --out, or its train or validation */
    const char *plan; /* a job document; NULL: none */
    int64_t sample;   /* images to decode */
    bool all;         /* decode every image */
    bool json;
    int threads;
};

/* Prints what is found to standard output. *problems: the data set should not be trained on as it
 * is. An error is one of this program or machine, not of the data. */
int audit(const struct audit_options *o, bool *problems, struct error *e);

struct stage_options {
    const char *from, *to;
    struct dataset_part part;   /* the node's of so many */
    const char *hosts, *host;   /* of the command line: where part comes from instead; or NULL */
    uint64_t bandwidth_per_sec; /* bytes; 0: no limit */
    uint64_t keep_free;         /* bytes to leave on the file system of to */
    bool keep;                  /* shards of earlier stagings that are not wanted now */
    bool json;
};

/* What stage failed on: a Slurm prolog does different things about it. */
enum stage_fault { STAGE_FAULT_NONE, STAGE_FAULT_DATA, STAGE_FAULT_SCRATCH };

/* Copies the shards of a part, and the manifest, to local scratch; what is there already and right
 * is not copied again. */
int stage(const struct stage_options *o, enum stage_fault *fault, struct error *e);

/* Set by SIGINT and SIGTERM; the commands stop at the next image with ERR_INTERRUPTED. */
extern volatile int prep_interrupted;
