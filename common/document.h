/* Checks JSON objects against a table of their keys. Job documents have a more powerful table:
 * common/job/job_options.h. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/problem.h"

/* Maximum in a list of problems; further unknown keys are ignored */
#define DOCUMENT_PROBLEMS_MAX 50

enum document_type {
    DOCUMENT_VALUE, /* checked by the caller */
    DOCUMENT_WORD,  /* one of `choices` */
    DOCUMENT_INTEGER,
    DOCUMENT_NUMBER,
    DOCUMENT_TEXT /* not empty, without NUL */
};

struct document_key {
    const char *name;
    enum document_type type;
    const char *const *choices; /* terminated by NULL */
    int64_t min, max;           /* bounds of numbers */
    bool required;
    const char *fallback; /* default, as JSON text; NULL: no default */
    const char *expects;  /* message for an invalid value; NULL: derived from the other members */
};

bool document_has_word(const char *const *words, const char *word);

/* Adds the problems of an object's keys to *problems and sets defaults for missing keys. keys:
 * terminated by a zeroed row. pointer: of the object. unknown: message for unknown keys. */
void document_check(json_t *object, const char *pointer, const struct document_key *keys,
                    const char *unknown, struct problems *problems);
