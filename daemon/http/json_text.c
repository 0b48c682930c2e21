#include "daemon/http/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for so many bytes more, or NULL. */
static char *room_for(struct json_text *t, size_t bytes)
{
    if (t->failed)
        return NULL;
    if (t->bytes + bytes > t->room) {
        size_t room = t->room ? t->room : 4096;
        while (room < t->bytes + bytes)
            room *= 2;
        char *larger = realloc(t->data, room);
        if (!larger) {
            t->failed = true;
            return NULL;
        }
        t->data = larger;
        t->room = room;
    }
    return t->data + t->bytes;
}

static void add(struct json_text *t, const char *text, size_t bytes)
{
    char *to = room_for(t, bytes);

    if (!to)
        return;
    memcpy(to, text, bytes);
    t->bytes += bytes;
}

static void add_key(struct json_text *t, const char *key)
{
    char last = t->bytes ? t->data[t->bytes - 1] : '[';

    if (last != '{' && last != '[')
        add(t, ",", 1);
    if (!key)
        return;
    add(t, "\"", 1);
    add(t, key, strlen(key));
    add(t, "\":", 2);
}

static void add_null(struct json_text *t)
{
    add(t, "null", 4);
}

void json_text_open(struct json_text *t, const char *key, char bracket)
{
    if (t->bytes)
        add_key(t, key);
    add(t, &bracket, 1);
}

void json_text_close(struct json_text *t, char bracket)
{
    add(t, &bracket, 1);
}

static bool is_plain(unsigned char c)
{
    return c >= ' ' && c != '"' && c != '\\';
}

static bool is_ascii(const char *text)
{
    while (*text && !(*text & 0x80))
        text++;
    return !*text;
}

static void add_escaped(struct json_text *t, unsigned char c)
{
    char text[8];
    const char *names = "\"\\\b\f\n\r\t", *letters = "\"\\bfnrt";
    const char *at = strchr(names, c);
    int bytes = at ? snprintf(text, sizeof text, "\\%c", letters[at - names])
                   : snprintf(text, sizeof text, "\\u%04x", c);

    add(t, text, (size_t)bytes);
}

void json_text_string(struct json_text *t, const char *key, const char *value)
{
    if (value && !is_ascii(value)) {
        json_text_value(t, key, json_string(value)); /* NULL where it is not UTF-8 */
        return;
    }
    add_key(t, key);
    if (!value) {
        add_null(t);
        return;
    }
    add(t, "\"", 1);
    while (*value) {
        size_t plain = 0;
        while (is_plain((unsigned char)value[plain]))
            plain++;
        add(t, value, plain);
        value += plain;
        if (*value)
            add_escaped(t, (unsigned char)*value++);
    }
    add(t, "\"", 1);
}

/* From the end of a buffer backwards; the first digit. */
static char *digits(char *end, uint64_t value)
{
    do
        *--end = (char)('0' + value % 10);
    while (value /= 10);
    return end;
}

void json_text_integer(struct json_text *t, const char *key, int64_t value)
{
    char text[24], *end = text + sizeof text;
    char *at = digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);

    if (value < 0)
        *--at = '-';
    add_key(t, key);
    add(t, at, (size_t)(end - at));
}

/* Most numbers have few decimals, as dates with microseconds: value = n / scale exactly as a
 * division of doubles, so these digits are read back as the same double. printf takes ten times as
 * long. */
static bool add_decimal(struct json_text *t, double value, int decimals, double scale)
{
    char text[40], *end = text + sizeof text;
    double scaled = round(fabs(value) * scale);

    if (!(scaled < 9007199254740992.0) || scaled / scale != fabs(value))
        return false;
    uint64_t n = (uint64_t)scaled;
    int zeros = 0;
    for (; zeros < decimals - 1 && n % 10 == 0; zeros++)
        n /= 10;
    char *at = digits(end, n), *point = end - (decimals - zeros);
    while (at >= point)
        *--at = '0';
    memmove(at - 1, at, (size_t)(point - at));
    at--;
    point[-1] = '.';
    if (signbit(value))
        *--at = '-';
    add(t, at, (size_t)(end - at));
    return true;
}

void json_text_real(struct json_text *t, const char *key, double value)
{
    char text[40];

    add_key(t, key);
    if (!isfinite(value)) {
        add_null(t);
        return;
    }
    if (add_decimal(t, value, 6, 1e6) || add_decimal(t, value, 9, 1e9))
        return;
    int bytes = snprintf(text, sizeof text, "%.16g", value);
    if (!strpbrk(text, ".e"))
        bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, ".0");
    add(t, text, (size_t)bytes);
}

static int take(const char *text, size_t bytes, void *context)
{
    add(context, text, bytes);
    return 0;
}

void json_text_value(struct json_text *t, const char *key, json_t *value)
{
    add_key(t, key);
    if (!value)
        add_null(t);
    else if (json_dump_callback(value, take, t,
                                JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(16)))
        t->failed = true;
    json_decref(value);
}

/* One token, or a string as a whole; its bytes. */
static size_t token(const char *json)
{
    size_t n = 1;

    if (*json != '"') {
        while (json[n] > ' ' && json[n] != '"')
            n++;
        return n;
    }
    while (json[n] && json[n] != '"')
        n += json[n] == '\\' && json[n + 1] ? 2 : 1;
    return json[n] ? n + 1 : n;
}

void json_text_raw(struct json_text *t, const char *key, const char *json)
{
    add_key(t, key);
    if (!json) {
        add_null(t);
        return;
    }
    while (*(json += strspn(json, " \t\r\n"))) {
        size_t bytes = token(json);
        add(t, json, bytes);
        json += bytes;
    }
}

void json_text_end(struct json_text *t)
{
    add(t, "\n", 1);
}

void json_text_clear(struct json_text *t)
{
    free(t->data);
    *t = (struct json_text){0};
}
