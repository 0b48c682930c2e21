/* Additions to jansson: bounded parsing with messages for the user, and whole files. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define JSON_DOCUMENT_LIMIT_BYTES (1024 * 1024)
#define JSON_DEPTH_LIMIT          32 /* levels of nesting */

/* Parses an object of at most JSON_DOCUMENT_LIMIT_BYTES and JSON_DEPTH_LIMIT levels without
 * duplicate keys. Returns a new reference, or NULL and fills *e: ERR_USAGE with line and column,
 * ERR_TOO_LARGE, or ERR_INVALID if the value is not an object. */
json_t *json_document_parse(const char *text, size_t bytes, struct error *e);

/* Like json_document_parse, for a file. "-" reads standard input. */
json_t *json_document_load(const char *path, struct error *e);

/* Reads any JSON value from fd and closes it. path is used in messages. If fd is negative, *e must
 * contain the error already. Returns NULL for errors: ERR_TOO_LARGE, ERR_CORRUPT or ERR_IO. */
json_t *json_read_fd(int fd, const char *path, size_t limit_bytes, struct error *e);

/* Returns a member, or fallback if it is missing (object may be NULL) or of another type. Text is
 * borrowed. */
double json_get_number(const json_t *object, const char *key, double fallback);
json_int_t json_get_integer(const json_t *object, const char *key, json_int_t fallback);
const char *json_get_text(const json_t *object, const char *key, const char *fallback);

/* Returns a new number, or null with a warning in the log if it is not finite. For such a number
 * json_real returns NULL, which looks like a lack of memory, and json_pack's "f" omits the key. */
#define json_number(value) json_number_of(value, #value)
json_t *json_number_of(double value, const char *what);

/* Returns a new value, or null for a number that is not finite, an unknown integer, or a text that
 * is NULL, empty or not UTF-8. */
json_t *json_number_or_null(double value);
json_t *json_integer_or_null(bool known, json_int_t value);
json_t *json_text_or_null(const char *text);

const json_t *json_get_at(const json_t *document, const char *pointer);

/* Sets the value (stolen) at a pointer and creates objects above it. Keys without "/" and "~". */
void json_set_at(json_t *document, const char *pointer, json_t *value);

/* Appends {"pointer", "values": [one of each document]} for each pointer at which the documents
 * differ (NULL: absent), in the order of the keys. Lists are compared as a whole. */
void json_differences(json_t *const *values, size_t count, json_t *differences);

/* Like json_dumps, but prints numbers with the fewest digits that read back as the same
 * number. flags: without JSON_REAL_PRECISION. The caller frees it; NULL: not representable, or
 * no memory. */
char *json_to_text(const json_t *value, size_t flags);
char *json_take_text(json_t *value); /* steals the reference; indented by 2 */
/* Returns a value as text of at most 60 bytes, for a message. The caller frees it. */
char *json_excerpt(const json_t *value);

/* Atomically writes a file with indented JSON and a final newline. Borrows value. */
int json_file_write(const char *path, const json_t *value, struct error *e);
