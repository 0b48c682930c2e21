/*
 * The table of the job document's keys. It generates the parser, defaults, checks, the JSON Schema
 * and the list in man/train-job.5. doc/how-to-add-an-option.md explains how to add a row.
 *
 * job_options.c contains the table, job_value.c converts one value between JSON and struct
 * job_spec, job_document.c a whole document, job_check.c checks constraints between keys,
 * job_docs.c prints the table.
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
    JOB_OPTION_CHOICE,  /* one of `choices`, stored as its index */
    JOB_OPTION_ARCH,    /* an architecture in common/net/arch.c, stored as a string */
    JOB_OPTION_STRINGS, /* list of strings */
    JOB_OPTION_NUMBERS, /* list of numbers */
    JOB_OPTION_STEPS,   /* [first, last] */
    JOB_OPTION_SIZES,   /* integer, or sizes by epoch: job_sizes.h */
    JOB_OPTION_MAP,     /* object of strings, stored as a list of "NAME=value" */
    JOB_OPTION_NOTIFY   /* list of rules: common/notify/rule.h */
};

struct job_option {
    const char *pointer; /* for example "/lr/base" */
    enum job_option_type type;
    enum job_text text;  /* allowed characters of a STRING, and of the elements of STRINGS or MAP */
    enum job_text names; /* allowed characters of the names in a MAP; no kind allows "=" */
    size_t name_max;     /* maximum bytes of a name in a MAP */
    bool unique;         /* the elements of STRINGS must differ */
    bool whole;          /* NUMBERS are integers */
    bool nullable;
    bool above_min;       /* exclusive minimum */
    bool below_max;       /* exclusive maximum */
    bool from_data;       /* the default depends on the training data: common/dataset/job_data.h */
    bool apart;           /* has no influence on the bits of results */
    size_t offset;        /* offset of the field in struct job_spec */
    size_t flag;          /* offset of its has_ field, the count of a list, or the sizes; 0: none */
    const char *fallback; /* default, as JSON text */
    double min, max; /* bounds of a number or of each number in a list; of the length of a string in
                        characters, of a path in bytes */
    size_t most;     /* maximum number of elements of a list or MAP */
    const char *const *choices; /* terminated by NULL, in the order of the field's enum. For an
                                   integer: words that are valid too, stored as min - 1, min - 2,
                                   ...; for STRINGS and NUMBERS: words that stand for a list of
                                   only them, stored as such */
    const char *unit;           /* for example "images"; NULL: none */
    const char *help;           /* one or two sentences, without range and default */
};

const struct job_option *job_option_at(size_t i); /* NULL after the last one */
const struct job_option *job_option_find(const char *pointer);

/* Returns whether the pointer is an object that contains keys of the table, such as "/lr". */
bool job_option_is_group(const char *pointer);

/* Returns whether all keys at or below the pointer are `apart`; false for an unknown pointer. */
bool job_option_is_apart(const char *pointer);

/* Returns choice i of a CHOICE, ARCH, INTEGER or STRINGS key; NULL after the last one. */
const char *job_option_choice(const struct job_option *option, size_t i);

json_t *job_option_default(const struct job_option *option); /* new reference */

const char *job_option_nearest(const char *unknown);

#define JOB_OPTION_EXPECTS_BYTES 512
/* Describes valid values: "a number above 0, at most 1000, or null". */
void job_option_expects(const struct job_option *option, char text[JOB_OPTION_EXPECTS_BYTES]);
