/* JSON beyond jansson: bounded parsing with messages for the user, and whole files. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define JSON_DOCUMENT_LIMIT_BYTES (1024 * 1024)
#define JSON_DEPTH_LIMIT          32 /* nesting */

/* Parses an object of at most JSON_DOCUMENT_LIMIT_BYTES and JSON_DEPTH_LIMIT levels without
 * duplicate keys. Returns a new reference, or NULL with *e filled: ERR_USAGE with line and column,
 * ERR_TOO_LARGE, ERR_INVALID if it is not an object. */
json_t *json_document_parse(const char *text, size_t bytes, struct error *e);

/* "-" is standard input. */
json_t *json_document_load(const char *path, struct error *e);

/* Reads any JSON from fd and closes it; if fd is negative, *e holds the reason already. path is for
 * messages. NULL: ERR_TOO_LARGE, ERR_CORRUPT, ERR_IO. */
json_t *json_read_fd(int fd, const char *path, size_t limit_bytes, struct error *e);

/* A member, or fallback if object is NULL, lacks it or has it with another type. Text is
 * borrowed. */
double json_get_number(const json_t *object, const char *key, double fallback);
json_int_t json_get_integer(const json_t *object, const char *key, json_int_t fallback);
const char *json_get_text(const json_t *object, const char *key, const char *fallback);

/* A new number; null, with a warning in the log, for one that is not finite. json_real and
 * json_pack's "f" give NULL for these, which looks like a lack of memory or silently omits the
 * key. */
#define json_number(value) json_number_of(value, #value)
json_t *json_number_of(double value, const char *what);

/* A new value, or null: for a number that is not finite, an unknown integer, a text that is NULL,
 * empty or not UTF-8. */
json_t *json_number_or_null(double value);
json_t *json_integer_or_null(bool known, json_int_t value);
json_t *json_text_or_null(const char *text);

/* The value at a pointer such as "/lr/base", or NULL. */
const json_t *json_get_at(const json_t *document, const char *pointer);

/* Sets the value (stolen) at a pointer, creating objects on the way; keys without "/" or "~". */
void json_set_at(json_t *document, const char *pointer, json_t *value);

/* Appends {"pointer", "values": [one each]} for each pointer at which the values differ (NULL:
 * absent), in key order. Lists are compared as a whole. */
void json_differences(json_t *const *values, size_t count, json_t *differences);

/* As json_dumps, but numbers have the fewest digits that read back the same. flags: not
 * JSON_REAL_PRECISION. The caller frees it; NULL: no memory, or not JSON. */
char *json_to_text(const json_t *value, size_t flags);
char *json_take_text(json_t *value); /* steals the reference; indented by 2 */
/* A value as text of at most 60 bytes, for a message. The caller frees it. */
char *json_excerpt(const json_t *value);

/* Writes indented JSON with a final newline, atomically. Borrows value. */
int json_file_write(const char *path, const json_t *value, struct error *e);
