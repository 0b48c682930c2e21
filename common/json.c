#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"

/* Depth is counted before parsing, so that a hostile document costs neither stack nor memory. */
static int depth_of(const char *text, size_t bytes)
{
    int depth = 0, deepest = 0, in_string = 0;

    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = 0;
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest)
                deepest = depth;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

json_t *json_document_parse(const char *text, size_t bytes, struct error *e)
{
    json_error_t where;

    if (bytes > JSON_DOCUMENT_LIMIT_BYTES) {
        error_set(e, ERR_TOO_LARGE, "the document has %zu bytes; at most %d are taken", bytes,
                  JSON_DOCUMENT_LIMIT_BYTES);
        return NULL;
    }
    int depth = depth_of(text, bytes);
    if (depth > JSON_DEPTH_LIMIT) {
        error_set(e, ERR_USAGE, "the document is nested %d levels deep; at most %d are taken",
                  depth, JSON_DEPTH_LIMIT);
        return NULL;
    }
    json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!value) {
        error_set(e, ERR_USAGE, "not valid JSON at line %d, column %d: %s", where.line,
                  where.column, where.text);
        return NULL;
    }
    if (!json_is_object(value)) {
        json_decref(value);
        error_set(e, ERR_INVALID,
                  "the document must be a JSON object, as in {\"data\": "
                  "{\"train\": \"/path/to/shards\"}}");
        return NULL;
    }
    return value;
}

json_t *json_document_load(const char *path, struct error *e)
{
    char *text;
    size_t bytes;

    if (file_read(path, JSON_DOCUMENT_LIMIT_BYTES, &text, &bytes, e))
        return NULL;
    json_t *value = json_document_parse(text, bytes, e);
    if (!value)
        error_prefix(e, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
    free(text);
    return value;
}

int json_file_write(const char *path, const json_t *value, struct error *e)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    if (!text)
        return error_set(e, ERR_NO_MEMORY, "cannot format %s", path);
    size_t bytes = strlen(text);
    text[bytes] = '\n'; /* the place of the terminating NUL, which is not written */
    int status = file_write_atomic(path, text, bytes + 1, e);
    free(text);
    return status;
}
