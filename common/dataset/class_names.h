/* The names of classes by number: of a data set, from class folders or train-prep's manifest.json;
 * of weights, from their file. A label is a number, so data and weights match only if they have the
 * same names in the same order. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/dataset/dataset.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/run/safetensors.h"

/* Key in a safetensors file's metadata; the value is a JSON array of strings */
#define CLASS_NAMES_KEY "classes"

struct class_names {
    json_t *list;    /* strings; NULL: unknown */
    const char *why; /* why they are unknown: "has shards without a manifest.json of train-prep" */
    char *first;     /* path of the first shard; NULL: none, or class folders */
    bool folders;
};

struct job_classes {
    struct class_names train, eval, weights;
    char unknown[1024];            /* what could not be compared, and why; one per line, or "" */
    char remark[ERROR_TEXT_BYTES]; /* about weights for other classes that are trained further; or
                                      "" */
};

/* Compares the classes of data.eval with those of data.train, and those of data.eval or, in
 * training, data.train with those of the weights (NULL: none). part: the part of data.train on this
 * machine. strict: training continues, so the classes of the weights must be the same. Returns
 * ERR_INVALID with the first difference and sets *key ("data.eval"); unreadable data is no error.
 * Always fills *out, which the caller must clear. */
int job_classes_compare(const struct job_spec *spec, struct dataset_part part,
                        const struct safetensors *weights, bool strict, struct job_classes *out,
                        const char **key, struct error *e);
void job_classes_clear(struct job_classes *c);

/* Returns the value for CLASS_NAMES_KEY, which the caller frees; NULL: unknown. */
char *class_names_to_text(const struct class_names *names);
