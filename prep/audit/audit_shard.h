/* What train-prep audit reads of a data set, and its report. */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/dataset/file_list.h"
#include "common/digest.h"
#include "common/image/jpeg.h"
#include "prep/manifest_shards.h"
#include "prep/work.h"

struct audit_options {
    const char *dir;  /* of convert's --out, or its train or validation */
    const char *plan; /* a job document; NULL: none */
    int64_t sample;   /* images to decode */
    bool all;         /* decode every image */
    bool json;
    int threads;
};

struct audit_record {
    uint64_t hash[2]; /* XXH3 of the JPEG's bytes */
    uint64_t offset;
    uint64_t bytes; /* of the payload */
    int32_t label;  /* 0-based; -1: none that makes sense */
    uint32_t shard; /* in its role's list */
};

struct audit_shard {
    struct audit_record *records; /* (count) */
    int64_t count;
    size_t room;
    uint64_t bytes; /* of the file */
    char hash[DIGEST_BYTES];
    int64_t damaged; /* wrong checksums, and frames where the walk had to end */
};

struct audit_role {
    bool present;
    struct dataset_list list;
    struct audit_shard *shards; /* (list.count) */
    int64_t images;             /* in all shards */
};

#define AUDIT_FINDINGS_MAX 100 /* kept word by word; all are counted */

struct audit {
    const struct audit_options *options;
    struct audit_role roles[2];
    struct manifest_shards manifest;
    bool has_manifest, manifest_broken;
    bool manifest_here; /* in the audited folder, not above it */
    int classes;        /* the manifest's, else one more than the largest label */
    struct progress progress;
    pthread_mutex_t lock; /* of what follows */
    json_t *findings;     /* texts: what is wrong with single records and files */
    int64_t decoded, undecodable;
    json_t *checks; /* see audit_say */
};

enum audit_status { AUDIT_OK, AUDIT_WARNING, AUDIT_PROBLEM };

/* Adds a check's outcome; steals values. */
void audit_say(struct audit *a, const char *check, enum audit_status status, json_t *values,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
void audit_find(struct audit *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A thread's scratch for reading. */
struct audit_reader {
    uint8_t *buffer;
    size_t room;
    struct jpeg_decoder *decoder;
};

/* Reads a shard: frames, checksums, labels, hashes; with options->all decodes each image. Problems
 * of the data are findings, not errors. */
int audit_walk(struct audit *a, struct audit_reader *r, enum dataset_role role, uint32_t shard,
               struct error *e);

/* Reads one record again and decodes it. */
int audit_decode(struct audit *a, struct audit_reader *r, enum dataset_role role,
                 const struct audit_record *record, struct error *e);
