/* JSON beyond jansson: bounded parsing with words for a person, and whole files. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define JSON_DOCUMENT_LIMIT_BYTES (1024 * 1024) /* of a job document */
#define JSON_DEPTH_LIMIT          32            /* levels of arrays and objects in it */

/* Parses a document of at most JSON_DOCUMENT_LIMIT_BYTES and JSON_DEPTH_LIMIT levels that is an
 * object and names no key twice. Returns a new reference, or NULL with *e filled: line and column
 * of what is malformed (ERR_USAGE), ERR_TOO_LARGE, or ERR_INVALID when it is not an object. */
json_t *json_document_parse(const char *text, size_t bytes, struct error *e);

/* The same from a file; "-" is standard input. */
json_t *json_document_load(const char *path, struct error *e);

/* Any JSON of an open file, which it closes: also a negative descriptor, whose error is in *e then.
 * path is for messages. NULL: ERR_TOO_LARGE, ERR_CORRUPT, ERR_IO. */
json_t *json_read_fd(int fd, const char *path, size_t limit_bytes, struct error *e);

/* A member of an object, or fallback where the object is NULL, has none, or it is of another type.
 * The text is borrowed from the object. */
double json_get_number(const json_t *object, const char *key, double fallback);
json_int_t json_get_integer(const json_t *object, const char *key, json_int_t fallback);
const char *json_get_text(const json_t *object, const char *key, const char *fallback);

/* A new number. JSON has none that is not finite: null stands in the place of such a value, and a
 * warning in the log says which it was. Instead of json_real and json_pack's "f", which give NULL:
 * that reads as a lack of memory, or leaves a key out without a word. */
#define json_number(value) json_number_of(value, #value)
json_t *json_number_of(double value, const char *what);

/* A new value; null for a number that is not finite, one that is not known, and a text that is
 * NULL, empty or not UTF-8. */
json_t *json_number_or_null(double value);
json_t *json_integer_or_null(bool known, json_int_t value);
json_t *json_text_or_null(const char *text);

/* What stands at "/lr/base"; NULL: nothing. */
const json_t *json_get_at(const json_t *document, const char *pointer);

/* Puts a value (taken over) at "/lr/base", making objects on the way; keys have no "/" or "~". */
void json_set_at(json_t *document, const char *pointer, json_t *value);

/* Appends {"pointer", "values": [one each]} to *differences for each place where the values are not
 * the same (NULL: nothing is there), keys in their order. A list is a value. */
void json_differences(json_t *const *values, size_t count, json_t *differences);

/* As json_dumps, with the fewest digits that give each number back as it is. flags: no
 * JSON_REAL_PRECISION. The caller frees the text; NULL: no memory, or no such JSON. */
char *json_to_text(const json_t *value, size_t flags);
char *json_take_text(json_t *value); /* steals the reference; indented by 2 */
/* A value as text of at most 60 bytes, for a message. The caller frees it. */
char *json_excerpt(const json_t *value);

/* Writes a value as indented JSON with a final newline, atomically. The reference stays yours. */
int json_file_write(const char *path, const json_t *value, struct error *e);
