/* JSON objects checked against a table of their keys. Job documents have a table of their own,
 * which knows much more: common/job/job_options.h. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/problem.h"

#define DOCUMENT_PROBLEMS_MAX 50 /* listed; unknown keys beyond are not looked at */

enum document_type {
    DOCUMENT_VALUE, /* checked by the caller */
    DOCUMENT_WORD,  /* one of words */
    DOCUMENT_INTEGER,
    DOCUMENT_NUMBER,
    DOCUMENT_TEXT /* not empty, without NUL */
};

struct document_key {
    const char *name;
    enum document_type type;
    const char *const *words; /* ends with NULL */
    int64_t least, most;      /* of numbers */
    bool required;
    const char *fallback; /* the default, as JSON text; NULL: none is set */
    const char *expects;  /* the message for a wrong value; NULL: made from the rest of the row */
};

/* Whether word is one of words; NULL is not. */
bool document_has_word(const char *const *words, const char *word);

/* Adds what is wrong with an object's keys to *problems, and sets the defaults of missing keys.
 * keys: ends with a zeroed row. pointer: of the object. unknown: the message for other keys. */
void document_check(json_t *object, const char *pointer, const struct document_key *keys,
                    const char *unknown, struct problems *problems);
