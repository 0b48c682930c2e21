/*
 * JSON written straight into one growing text, for answers that are asked for thousands of times a
 * second: no tree, no second copy, and documents that are JSON text already are taken as they are.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"

#define JSON_TEXT_LIMIT_BYTES ((size_t)1 << 30)

/* Initialise with JSON_TEXT. Over the limit or without memory it fails once and for all, and says
 * so at the end. */
struct json_text {
    struct buffer out;
    bool failed; /* a value that cannot be written */
};

#define JSON_TEXT ((struct json_text){.out = BUFFER(JSON_TEXT_LIMIT_BYTES)})

/* '{', '}', '[' or ']', with the comma that goes before an opening one. key: NULL in an array. */
void json_text_open(struct json_text *t, const char *key, char bracket);
void json_text_close(struct json_text *t, char bracket);

/* Members: key needs no escapes. */
void json_text_string(struct json_text *t, const char *key, const char *value); /* NULL: null */
void json_text_integer(struct json_text *t, const char *key, int64_t value);
/* Null where it is not known, or not above 0. */
void json_text_known(struct json_text *t, const char *key, bool known, int64_t value);
void json_text_positive(struct json_text *t, const char *key, int64_t value);
/* As many digits as it needs; null where it is not finite. */
void json_text_real(struct json_text *t, const char *key, double value);
/* In Unix seconds; null for 0, which is none. */
void json_text_time(struct json_text *t, const char *key, double time);
/* Rounded to 12 digits: for means, whose other digits say nothing. */
void json_text_rounded(struct json_text *t, const char *key, double value);
/* Anything else; steals the reference; NULL: null. */
void json_text_value(struct json_text *t, const char *key, json_t *value);
/* JSON text, less its white space between tokens; NULL: null. */
void json_text_raw(struct json_text *t, const char *key, const char *json);

/* The line's end; false: it has failed. */
bool json_text_end(struct json_text *t);
void json_text_clear(struct json_text *t);
