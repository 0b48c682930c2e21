#include "daemon/http/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/number.h"

static void json_text_append(struct json_text *t, const char *text, size_t bytes)
{
    buffer_append(&t->out, text, bytes);
}

static void json_text_add_key(struct json_text *t, const char *key)
{
    char last = t->out.bytes ? t->out.data[t->out.bytes - 1] : '[';

    if (last != '{' && last != '[')
        json_text_append(t, ",", 1);
    if (!key)
        return;
    json_text_append(t, "\"", 1);
    json_text_append(t, key, strlen(key));
    json_text_append(t, "\":", 2);
}

static void json_text_add_null(struct json_text *t)
{
    json_text_append(t, "null", 4);
}

void json_text_open(struct json_text *t, const char *key, char bracket)
{
    if (t->out.bytes)
        json_text_add_key(t, key);
    json_text_append(t, &bracket, 1);
}

void json_text_close(struct json_text *t, char bracket)
{
    json_text_append(t, &bracket, 1);
}

static bool json_text_is_plain(unsigned char c)
{
    return c >= ' ' && c != '"' && c != '\\';
}

static bool json_text_is_ascii(const char *text)
{
    while (*text && !(*text & 0x80))
        text++;
    return !*text;
}

static void json_text_add_escaped(struct json_text *t, unsigned char c)
{
    char text[8];
    const char *names = "\"\\\b\f\n\r\t", *letters = "\"\\bfnrt";
    const char *at = strchr(names, c);
    int bytes = at ? snprintf(text, sizeof text, "\\%c", letters[at - names])
                   : snprintf(text, sizeof text, "\\u%04x", c);

    json_text_append(t, text, (size_t)bytes);
}

void json_text_string(struct json_text *t, const char *key, const char *value)
{
    if (value && !json_text_is_ascii(value)) {
        json_text_value(t, key, json_string(value)); /* NULL if it is not valid UTF-8 */
        return;
    }
    json_text_add_key(t, key);
    if (!value) {
        json_text_add_null(t);
        return;
    }
    json_text_append(t, "\"", 1);
    while (*value) {
        size_t plain = 0;
        while (json_text_is_plain((unsigned char)value[plain]))
            plain++;
        json_text_append(t, value, plain);
        value += plain;
        if (*value)
            json_text_add_escaped(t, (unsigned char)*value++);
    }
    json_text_append(t, "\"", 1);
}

static char *json_text_digits(char *end, uint64_t value)
{
    do
        *--end = (char)('0' + value % 10);
    while (value /= 10);
    return end;
}

void json_text_integer(struct json_text *t, const char *key, int64_t value)
{
    char text[24], *end = text + sizeof text;
    char *at = json_text_digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);

    if (value < 0)
        *--at = '-';
    json_text_add_key(t, key);
    json_text_append(t, at, (size_t)(end - at));
}

/* Appends n / 10^decimals, decimals >= 1, with at least one digit on each side of the point. */
static void json_text_add_scaled(struct json_text *t, bool negative, uint64_t n, int decimals)
{
    char text[48], *end = text + sizeof text;

    for (; decimals > 1 && n % 10 == 0; decimals--)
        n /= 10;
    char *at = json_text_digits(end, n), *point = end - decimals;
    while (at >= point)
        *--at = '0';
    memmove(at - 1, at, (size_t)(point - at));
    at--;
    point[-1] = '.';
    if (negative)
        *--at = '-';
    json_text_append(t, at, (size_t)(end - at));
}

/* Most numbers have few decimals, such as times in microseconds. If value == n / scale exactly in
 * double arithmetic, these digits read back as the same double; this is ten times as fast as
 * printf. */
static bool json_text_add_decimal(struct json_text *t, double value, int decimals, double scale)
{
    double scaled = round(fabs(value) * scale);

    if (!(scaled < 9007199254740992.0) || scaled / scale != fabs(value))
        return false;
    json_text_add_scaled(t, signbit(value), (uint64_t)scaled, decimals);
    return true;
}

static void json_text_add_printed(struct json_text *t, const char *digits)
{
    json_text_append(t, digits, strlen(digits));
    if (!strpbrk(digits, ".e"))
        json_text_append(t, ".0", 2);
}

void json_text_real(struct json_text *t, const char *key, double value)
{
    char digits[NUMBER_BYTES];

    json_text_add_key(t, key);
    if (!isfinite(value))
        json_text_add_null(t);
    else if (!json_text_add_decimal(t, value, 6, 1e6) && !json_text_add_decimal(t, value, 9, 1e9))
        json_text_add_printed(t, number_text(value, digits));
}

void json_text_known(struct json_text *t, const char *key, bool known, int64_t value)
{
    if (known)
        json_text_integer(t, key, value);
    else
        json_text_raw(t, key, NULL);
}

void json_text_positive(struct json_text *t, const char *key, int64_t value)
{
    json_text_known(t, key, value > 0, value);
}

void json_text_time(struct json_text *t, const char *key, double time)
{
    json_text_real(t, key, time > 0 ? time : NAN);
}

#define ROUNDED_DIGITS 12

void json_text_rounded(struct json_text *t, const char *key, double value)
{
    static const double tens[] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                                  1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};
    char digits[NUMBER_BYTES];

    json_text_add_key(t, key);
    if (!isfinite(value)) {
        json_text_add_null(t);
        return;
    }
    int before = value == 0 ? 1 : (int)floor(log10(fabs(value))) + 1; /* digits before the point */
    int decimals = ROUNDED_DIGITS - before;
    if (decimals < 1 || decimals > 16) {
        snprintf(digits, sizeof digits, "%.*g", ROUNDED_DIGITS, value);
        json_text_add_printed(t, digits);
    } else {
        json_text_add_scaled(t, signbit(value), (uint64_t)llround(fabs(value) * tens[decimals]),
                             decimals);
    }
}

void json_text_value(struct json_text *t, const char *key, json_t *value)
{
    char *text = value ? json_to_text(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    json_text_add_key(t, key);
    if (!value)
        json_text_add_null(t);
    else if (text)
        json_text_append(t, text, strlen(text));
    else
        t->failed = true;
    free(text);
    json_decref(value);
}

static size_t json_text_token(const char *json)
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
    json_text_add_key(t, key);
    if (!json) {
        json_text_add_null(t);
        return;
    }
    while (*(json += strspn(json, " \t\r\n"))) {
        size_t bytes = json_text_token(json);
        json_text_append(t, json, bytes);
        json += bytes;
    }
}

bool json_text_end(struct json_text *t)
{
    json_text_append(t, "\n", 1);
    return !t->failed && !t->out.failed;
}

void json_text_clear(struct json_text *t)
{
    buffer_clear(&t->out);
    t->failed = false;
}
