/*
 * What classes are called, by number: of data by the names of their folders or the manifest.json of
 * train-prep, of weights by what train-worker wrote into their file. A label is a number, so the
 * names at both ends of a comparison must be the same, in the same order.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/dataset/dataset.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/run/safetensors.h"

/* The key in a safetensors file's metadata: its value is a JSON array of strings. */
#define CLASS_NAMES_KEY "classes"

struct class_names {
    json_t *list;    /* strings; NULL: not known */
    const char *why; /* they are not known: "has shards without a manifest.json of train-prep" */
    char *first;     /* the path of the first shard; NULL: none, or class folders */
    bool folders;
};

/* What a job's classes are called, as far as it has such data or weights. */
struct job_classes {
    struct class_names train, eval, weights;
    char unknown[1024];            /* lines: what could not be compared, and why; "" */
    char remark[ERROR_TEXT_BYTES]; /* of weights for other classes that are trained further; "" */
};

/* Compares data.eval with data.train, and data.eval or, in training, data.train with the weights
 * (NULL: none). part: of data.train, that is here. strict: training goes on from them, so they must
 * be for the same classes; else it may teach them others. ERR_INVALID: the first difference of what
 * *key ("data.eval") names and what would be right; data that cannot be seen is no error. Fills
 * *out, to be cleared, also then. */
int job_classes_compare(const struct job_spec *spec, struct dataset_part part,
                        const struct safetensors *weights, bool strict, struct job_classes *out,
                        const char **key, struct error *e);
void job_classes_clear(struct job_classes *c);

/* The text for CLASS_NAMES_KEY, which the caller frees; NULL: not known, or no memory. */
char *class_names_to_text(const struct class_names *names);
