/* The names of classes by number: of data, from class folders or train-prep's manifest.json; of
 * weights, from their file. A label is a number, so a comparison needs the same names in the same
 * order. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/dataset/dataset.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/run/safetensors.h"

/* In a safetensors file's metadata: a JSON array of strings. */
#define CLASS_NAMES_KEY "classes"

struct class_names {
    json_t *list;    /* strings; NULL: not known */
    const char *why; /* they are not known: "has shards without a manifest.json of train-prep" */
    char *first;     /* the path of the first shard; NULL: none, or class folders */
    bool folders;
};

struct job_classes {
    struct class_names train, eval, weights;
    char unknown[1024];            /* lines: what could not be compared, and why; "" */
    char remark[ERROR_TEXT_BYTES]; /* of weights for other classes that are trained further; "" */
};

/* Compares data.eval with data.train, and data.eval or, in training, data.train with the weights
 * (NULL: none). part: of data.train, that is here. strict: training continues, so the weights'
 * classes must be the same. ERR_INVALID with the first difference, of *key ("data.eval");
 * unreadable data is no error. Fills *out in any case; clear it. */
int job_classes_compare(const struct job_spec *spec, struct dataset_part part,
                        const struct safetensors *weights, bool strict, struct job_classes *out,
                        const char **key, struct error *e);
void job_classes_clear(struct job_classes *c);

/* For CLASS_NAMES_KEY. The caller frees it; NULL: not known, or no memory. */
char *class_names_to_text(const struct class_names *names);
