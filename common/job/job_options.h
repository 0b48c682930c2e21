/*
 * The job document's keys: THE table. Parsing, defaults, checks, the JSON Schema and the list in
 * man/train-job.5 come from it; how to add a row: doc/how-to-add-an-option.md.
 *
 * job_options.c holds the table, job_value.c moves one value between JSON and struct job_spec,
 * job_document.c does it for a whole document, job_check.c knows what depends on two keys,
 * job_schema.c prints the table for others.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/job/job_spec.h"
#include "common/job/job_text.h"
#include "common/problem.h"

enum job_option_type {
    JOB_OPTION_BOOLEAN,
    JOB_OPTION_INTEGER,
    JOB_OPTION_NUMBER,
    JOB_OPTION_STRING,
    JOB_OPTION_CHOICE,  /* one of choices, stored as its index */
    JOB_OPTION_ARCH,    /* one of common/net/arch.c's names, stored as a string */
    JOB_OPTION_STRINGS, /* a list */
    JOB_OPTION_NUMBERS, /* a list */
    JOB_OPTION_STEPS,   /* [first, last] */
    JOB_OPTION_SIZES,   /* an integer, or sizes by epoch: job_sizes.h */
    JOB_OPTION_MAP,     /* an object of strings, stored as a list of "NAME=value" */
    JOB_OPTION_NOTIFY   /* a list of rules: common/notify/rule.h */
};

struct job_option {
    const char *pointer; /* "/lr/base" */
    enum job_option_type type;
    enum job_text text;  /* of a STRING, and of each in STRINGS or MAP: what it may be made of */
    enum job_text names; /* of a MAP: what its names may be made of; none has a "=" in it */
    size_t name_max;     /* bytes of such a name */
    bool unique;         /* of STRINGS: none of them twice */
    bool nullable;
    bool above_min;       /* min itself is too small */
    bool below_max;       /* max itself is too large */
    bool from_data;       /* the default is what the training data say: common/dataset/job_data.h */
    bool apart;           /* bears on no bit of what a run comes to */
    size_t offset;        /* of the field in struct job_spec */
    size_t flag;          /* of its has_ field, a list's count or the sizes; 0: it has none */
    const char *fallback; /* the default, as JSON text */
    double min, max;      /* of a number or of each in a list; of a string's length in characters,
                             of a path's in bytes */
    size_t most;          /* elements of a list or MAP */
    const char *const *choices; /* ends with NULL; in the order of the field's enum. Of an integer:
                                   words that it takes too, stored as min - 1, min - 2, ... */
    const char *unit;           /* "images"; NULL: a bare number, or none at all */
    const char *help;           /* a sentence or two, without the range and the default */
};

const struct job_option *job_option_at(size_t i); /* NULL behind the last */
const struct job_option *job_option_find(const char *pointer);

/* True of "/lr": an object that holds rows of the table. */
bool job_option_is_group(const char *pointer);

/* All rows at or below the pointer are apart; false of a place that the table does not know. */
bool job_option_is_apart(const char *pointer);

/* Choice i of a CHOICE, ARCH or INTEGER row; NULL behind the last. */
const char *job_option_choice(const struct job_option *option, size_t i);

json_t *job_option_default(const struct job_option *option); /* a new reference */

/* The nearest right pointer to an unknown one, or NULL. */
const char *job_option_nearest(const char *unknown);

#define JOB_OPTION_EXPECTS_BYTES 512
/* "a number above 0, at most 1000, or null": what the row takes. */
void job_option_expects(const struct job_option *option, char text[JOB_OPTION_EXPECTS_BYTES]);
