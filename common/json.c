#include "common/json.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xalloc.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "common/number.h"

static const char *json_advice(const char *words)
{
    const char *near = strstr(words, " near '");
    char token = near ? near[strlen(" near '")] : '\0';
    bool ends_list =
        strncmp(words + 1, "}' expected", 11) == 0 || strncmp(words + 1, "]' expected", 11) == 0;

    if (strstr(words, "near end of file") || strncmp(words, "premature end", 13) == 0)
        return "the document ends too early: a quote, ] or } is missing";
    if (token == '}' &&
        *words == 's') /* jansson expected a string, probably after a trailing comma */
        return "remove the comma in front of }";
    if (strcmp(words, "unexpected token near ']'") == 0)
        return "remove the comma in front of ]";
    if (token == '/' || token == '#')
        return "JSON has no comments";
    if (token == '\'')
        return "use double quotes instead of single ones";
    if (strncmp(words, "unexpected newline", 18) == 0)
        return "a double quote is missing at the end of the line";
    if (isalpha((unsigned char)token) && strncmp(words, "string or '}'", 13) == 0)
        return "keys need double quotes";
    if (isalpha((unsigned char)token) && strncmp(words, "invalid token", 13) == 0)
        return "strings need double quotes; only true, false and null have none";
    return ends_list && strchr("\"{[-0123456789", token) ? "a comma is missing" : NULL;
}

static json_t *json_parse(const char *text, size_t bytes, struct error *e)
{
    json_error_t where;

    if (content_skip_mark(&text, &bytes, e))
        return NULL;
    json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    const char *advice = value ? NULL : json_advice(where.text);
    if (!value)
        error_set(e, ERR_USAGE, "not valid JSON at line %d, column %d: %s", where.line,
                  where.column, advice ? advice : where.text);
    return value;
}

/* Checked before parsing, so that a hostile document cannot exhaust stack or memory. */
static int json_depth_of(const char *text, size_t bytes)
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
    if (bytes > JSON_DOCUMENT_LIMIT_BYTES) {
        error_set(e, ERR_TOO_LARGE, "the document has %zu bytes; at most %d are taken", bytes,
                  JSON_DOCUMENT_LIMIT_BYTES);
        return NULL;
    }
    if (!text || bytes == 0) {
        error_set(e, ERR_USAGE, "the document is empty: it must be a JSON object");
        return NULL;
    }
    int depth = json_depth_of(text, bytes);
    if (depth > JSON_DEPTH_LIMIT) {
        error_set(e, ERR_USAGE, "the document is nested %d levels deep; at most %d are taken",
                  depth, JSON_DEPTH_LIMIT);
        return NULL;
    }
    json_t *value = json_parse(text, bytes, e);
    if (value && !json_is_object(value)) {
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

static const char *json_pointer_part(const char *pointer, char part[256])
{
    size_t length = strcspn(pointer + 1, "/");

    snprintf(part, 256, "%.*s", (int)length, pointer + 1);
    return pointer + 1 + length;
}

json_t *json_read_fd(int fd, const char *path, size_t limit_bytes, struct error *e)
{
    struct error why = {0};
    char *text;
    size_t bytes;

    if (fd < 0 || file_read_fd(fd, path, limit_bytes, &text, &bytes, e))
        return NULL;
    json_t *value = json_parse(text, bytes, &why);
    free(text);
    if (!value)
        error_set(e, ERR_CORRUPT, "%s cannot be read: %s", path, why.text);
    return value;
}

double json_get_number(const json_t *object, const char *key, double fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

json_int_t json_get_integer(const json_t *object, const char *key, json_int_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

const char *json_get_text(const json_t *object, const char *key, const char *fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : fallback;
}

json_t *json_number_of(double value, const char *what)
{
    if (!isfinite(value))
        log_warning("%s is %g, which JSON cannot represent: written as null", what, value);
    return json_number_or_null(value);
}

json_t *json_number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_integer_or_null(bool known, json_int_t value)
{
    return known ? json_integer(value) : json_null();
}

json_t *json_text_or_null(const char *text)
{
    json_t *string = text && *text ? json_string(text) : NULL;
    return string ? string : json_null();
}

const json_t *json_get_at(const json_t *document, const char *pointer)
{
    char part[256];

    while (document && *pointer) {
        pointer = json_pointer_part(pointer, part);
        document = json_object_get(document, part);
    }
    return document;
}

void json_set_at(json_t *document, const char *pointer, json_t *value)
{
    char part[256];

    while (*(pointer = json_pointer_part(pointer, part))) {
        json_t *below = json_object_get(document, part);
        if (!json_is_object(below)) {
            json_object_set_new(document, part, json_object());
            below = json_object_get(document, part);
        }
        document = below;
    }
    json_object_set_new(document, part, value);
}

static void json_differences_at(json_t *const *values, size_t count, const char *pointer,
                                json_t *differences);

static void json_differences_below(json_t *const *values, size_t count, const char *pointer,
                                   json_t *differences)
{
    json_t *keys = json_object(), *ignored, **below = calloc(count, sizeof *below);
    char deeper[512];
    const char *key;

    for (size_t i = 0; i < count; i++)
        json_object_update(keys, values[i]);
    json_object_foreach (keys, key, ignored) {
        for (size_t i = 0; below && i < count; i++)
            below[i] = json_object_get(values[i], key);
        snprintf(deeper, sizeof deeper, "%s/%s", pointer, key);
        if (below)
            json_differences_at(below, count, deeper, differences);
    }
    free(below);
    json_decref(keys);
}

static void json_differences_at(json_t *const *values, size_t count, const char *pointer,
                                json_t *differences)
{
    bool same = true, objects = true;

    for (size_t i = 0; i < count; i++) {
        same = same && (values[i] ? json_equal(values[i], values[0]) : !values[0]);
        objects = objects && json_is_object(values[i]);
    }
    if (same)
        return;
    if (objects) {
        json_differences_below(values, count, pointer, differences);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, values[i] ? json_incref(values[i]) : json_null());
    json_array_append_new(differences, json_pack("{s:s, s:o}", "pointer", pointer, "values", list));
}

void json_differences(json_t *const *values, size_t count, json_t *differences)
{
    json_differences_at(values, count, "", differences);
}

/* Writes the number at `from` with the fewest digits to `to`, which must not be after `from`.
 * Returns the end of the result. */
static char *json_shorten_number(char *to, const char *from, size_t length)
{
    char text[NUMBER_BYTES + sizeof ".0"];

    if (memchr(from, '.', length) || memchr(from, 'e', length)) {
        number_text(strtod(from, NULL), text);
        if (!strpbrk(text, ".e"))
            strcat(text, ".0"); /* so that it stays a real number */
        if (strlen(text) <= length) {
            from = text;
            length = strlen(text);
        }
    }
    memmove(to, from, length);
    return to + length;
}

static size_t json_token_length(const char *text)
{
    size_t length = 1;

    if (*text == '-' || (*text >= '0' && *text <= '9'))
        return strspn(text, "+-.0123456789eE");
    while (*text == '"' && text[length] != '"')
        length += text[length] == '\\' ? 2 : 1;
    return *text == '"' ? length + 1 : length;
}

char *json_to_text(const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags | JSON_REAL_PRECISION(17)), *to = text;
    size_t length;

    for (const char *from = text; from && *from; from += length) {
        length = json_token_length(from);
        if (*from != '"' && length > 1) {
            to = json_shorten_number(to, from, length);
        } else {
            memmove(to, from, length);
            to += length;
        }
    }
    if (to)
        *to = '\0';
    return text;
}

char *json_take_text(json_t *value)
{
    char *text = must_alloc(json_to_text(must_alloc(value), JSON_INDENT(2)));

    json_decref(value);
    return text;
}

int json_file_write(const char *path, const json_t *value, struct error *e)
{
    char *text = must_alloc(json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(12)));
    size_t bytes = strlen(text);
    text[bytes] = '\n';
    int status = file_write_atomic(path, text, bytes + 1, e);
    free(text);
    return status;
}

char *json_excerpt(const json_t *v)
{
    char *text = json_to_text(v, JSON_ENCODE_ANY | JSON_COMPACT);
    size_t cut = 57;

    if (text && strlen(text) > cut + 3) {
        while (((unsigned char)text[cut] & 0xc0) == 0x80)
            cut--; /* do not cut inside a UTF-8 character */
        strcpy(text + cut, "...");
    }
    return text;
}
