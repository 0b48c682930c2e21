/* A JSON writer for frequent responses: appends to a single buffer, builds no tree, and embeds
 * stored JSON text unchanged. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"

#define JSON_TEXT_LIMIT_BYTES ((size_t)1 << 30)

/* Initialise with JSON_TEXT. json_text_end reports errors (limit exceeded, out of memory). */
struct json_text {
    struct buffer out;
    bool failed; /* a value could not be written */
};

#define JSON_TEXT ((struct json_text){.out = BUFFER(JSON_TEXT_LIMIT_BYTES)})

/* Writes '{', '}', '[' or ']', preceded by a comma if an opening one needs it. key: NULL in an
 * array. */
void json_text_open(struct json_text *t, const char *key, char bracket);
void json_text_close(struct json_text *t, char bracket);

/* key must not need escaping. */
void json_text_string(struct json_text *t, const char *key, const char *value); /* NULL: null */
void json_text_integer(struct json_text *t, const char *key, int64_t value);
/* Writes null if the value is unknown or not positive. */
void json_text_known(struct json_text *t, const char *key, bool known, int64_t value);
void json_text_positive(struct json_text *t, const char *key, int64_t value);
/* Writes as many digits as needed to read back the same double; null if not finite. */
void json_text_real(struct json_text *t, const char *key, double value);
void json_text_time(struct json_text *t, const char *key, double time);
void json_text_rounded(struct json_text *t, const char *key, double value);
/* Writes any value; steals the reference. NULL: null. */
void json_text_value(struct json_text *t, const char *key, json_t *value);
/* Embeds JSON text, which must have no white space between tokens. NULL: null. */
void json_text_raw(struct json_text *t, const char *key, const char *json);

/* Ends the text with a newline. Returns false if writing failed. */
bool json_text_end(struct json_text *t);
void json_text_clear(struct json_text *t);
