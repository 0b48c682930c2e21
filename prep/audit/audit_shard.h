/* The data that train-prep audit reads from a data set, and its report. */
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
    const char *dir;  /* output folder of convert, or its train or validation folder */
    const char *plan; /* job document; NULL: none */
    int64_t sample;   /* number of images to decode */
    bool all;         /* decode every image */
    bool json;
    int threads;
};

struct audit_record {
    uint64_t hash[2]; /* XXH3 of the JPEG's bytes */
    uint64_t offset;
    uint64_t bytes; /* size of the payload */
    int32_t label;  /* 0-based; -1: invalid */
    uint32_t shard; /* index in its role's list */
};

struct audit_shard {
    struct audit_record *records; /* (count) */
    int64_t count;
    size_t capacity;
    uint64_t bytes; /* size of the file */
    char hash[DIGEST_BYTES];
    int64_t damaged; /* checksum errors, and frames after which the shard could not be read on */
};

struct audit_role {
    bool present;
    struct dataset_list list;
    struct audit_shard *shards; /* (list.count) */
    int64_t images;             /* total of all shards */
};

/* Maximum number of stored texts; further findings are only counted */
#define AUDIT_FINDINGS_MAX 100

struct audit {
    const struct audit_options *options;
    struct audit_role roles[2];
    struct manifest_shards manifest;
    bool has_manifest, manifest_broken;
    bool manifest_here; /* the manifest is in the audited folder, not in its parent */
    int classes;        /* as in the manifest, else the largest label plus one */
    struct progress progress;
    pthread_mutex_t lock; /* guards the members below */
    json_t *findings;     /* texts about problems of single records and files */
    int64_t decoded, undecodable;
    int64_t turned;         /* images whose Exif orientation is not upright */
    char first_turned[512]; /* name and shard of one of them */
    json_t *checks;         /* see audit_say */
};

enum audit_status { AUDIT_OK, AUDIT_WARNING, AUDIT_PROBLEM };

/* Adds the result of a check; steals values. */
void audit_say(struct audit *a, const char *check, enum audit_status status, json_t *values,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
void audit_find(struct audit *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct audit_reader {
    uint8_t *buffer;
    size_t capacity;
    struct jpeg_decoder *decoder;
};

/* Reads a shard: frames, checksums, labels, hashes; with options->all also decodes each image.
 * Problems of the data become findings, not errors. */
int audit_walk(struct audit *a, struct audit_reader *r, enum dataset_role role, uint32_t shard,
               struct error *e);

/* Reads a record again and decodes it. */
int audit_decode(struct audit *a, struct audit_reader *r, enum dataset_role role,
                 const struct audit_record *record, struct error *e);
