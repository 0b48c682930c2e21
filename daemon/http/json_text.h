/*
 * A JSON writer for frequent answers: it appends to one buffer, without a tree or a copy, and
 * embeds stored JSON text as it is.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"

#define JSON_TEXT_LIMIT_BYTES ((size_t)1 << 30)

/* Initialise with JSON_TEXT. Errors (over the limit, no memory) are reported by json_text_end. */
struct json_text {
    struct buffer out;
    bool failed; /* a value could not be written */
};

#define JSON_TEXT ((struct json_text){.out = BUFFER(JSON_TEXT_LIMIT_BYTES)})

/* '{', '}', '[' or ']', with a comma before an opening one if needed. key: NULL in an array. */
void json_text_open(struct json_text *t, const char *key, char bracket);
void json_text_close(struct json_text *t, char bracket);

/* key needs no escapes. */
void json_text_string(struct json_text *t, const char *key, const char *value); /* NULL: null */
void json_text_integer(struct json_text *t, const char *key, int64_t value);
/* Null if unknown, or not positive. */
void json_text_known(struct json_text *t, const char *key, bool known, int64_t value);
void json_text_positive(struct json_text *t, const char *key, int64_t value);
/* With as many digits as needed; null if not finite. */
void json_text_real(struct json_text *t, const char *key, double value);
void json_text_time(struct json_text *t, const char *key, double time);
void json_text_rounded(struct json_text *t, const char *key, double value);
/* Any value; steals the reference. NULL: null. */
void json_text_value(struct json_text *t, const char *key, json_t *value);
/* JSON text without white space between tokens; NULL: null. */
void json_text_raw(struct json_text *t, const char *key, const char *json);

/* Ends the text with a newline; false: writing it failed. */
bool json_text_end(struct json_text *t);
void json_text_clear(struct json_text *t);
