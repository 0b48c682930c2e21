#include "common/text/printable.h"
#include "common/xalloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a sequence by its first one; 0: none begins so. */
static size_t printable_sequence_length(unsigned char first)
{
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

/* Decodes one character; returns its bytes, 0 if it is not UTF-8's. */
static size_t printable_decode(const char *text, size_t bytes, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = printable_sequence_length((unsigned char)text[0]);

    if (length == 0 || length > bytes)
        return 0;
    *c = length == 1 ? (unsigned char)text[0] : (unsigned char)text[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return *c < least[length] || (*c >= 0xd800 && *c < 0xe000) || *c > 0x10ffff ? 0 : length;
}

/* The patterns of the JSON Schema say the same (common/job/job_text.c). */
static bool printable_is_unsafe(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || /* the Arabic letter mark */
           c == 0x200e || c == 0x200f ||   /* left-to-right and right-to-left marks */
           (c >= 0x2028 && c <= 0x202e) || /* separators, embeddings, overrides */
           (c >= 0x2066 && c <= 0x2069);   /* isolates */
}

/* Is it among the control characters that stay? */
static bool printable_is_kept(uint32_t c, const char *keep)
{
    return c && c < 0x80 && strchr(keep, (int)c);
}

bool printable_is(const char *text)
{
    return printable_is_but(text, "");
}

bool printable_is_but(const char *text, const char *keep)
{
    size_t left = strlen(text), length;
    uint32_t c;

    for (; left > 0; text += length, left -= length) {
        length = printable_decode(text, left, &c);
        if (length == 0 || (printable_is_unsafe(c) && !printable_is_kept(c, keep)))
            return false;
    }
    return true;
}

static int printable_escape_character(char *out, size_t room, uint32_t c)
{
    static const char letters[] = "\b\t\n\f\r", names[] = "btnfr";
    const char *at = c && c < 0x20 ? strchr(letters, (int)c) : NULL;

    return at ? snprintf(out, room, "\\%c", names[at - letters])
              : snprintf(out, room, "\\u%04x", c);
}

size_t printable_escape(char *out, size_t room, const char *text, size_t bytes, const char *keep)
{
    char piece[16];
    size_t used = 0, length;
    uint32_t c = 0;

    for (size_t i = 0; i < bytes; i += length) {
        size_t wide = printable_decode(text + i, bytes - i, &c);
        int put = 0;
        length = wide ? wide : 1;
        if (!wide)
            put = snprintf(piece, sizeof piece, "\\ufffd");
        else if (printable_is_unsafe(c) && !printable_is_kept(c, keep))
            put = printable_escape_character(piece, sizeof piece, c);
        if (used + (put ? (size_t)put : length) >= room)
            break;
        memcpy(out + used, put ? piece : text + i, put ? (size_t)put : length);
        used += put ? (size_t)put : length;
    }
    if (room > 0)
        out[used] = '\0';
    return used;
}

char *printable_copy(const char *text, const char *keep)
{
    size_t bytes = strlen(text), room = PRINTABLE_GROWTH * bytes + 1;
    char *copy = xmalloc(room);

    printable_escape(copy, room, text, bytes, keep);
    return copy;
}

static void printable_escape_string(json_t *string, const char *keep)
{
    if (printable_is(json_string_value(string)))
        return;
    char *copy = printable_copy(json_string_value(string), keep);
    json_string_set(string, copy);
    free(copy);
}

static void printable_escape_keys(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, key, value)
    {
        if (printable_is(key))
            continue;
        char *copy = printable_copy(key, "");
        json_object_set(object, copy, value);
        json_object_del(object, key);
        free(copy);
    }
}

static bool printable_is_listed_key(const char *key, const char *lines)
{
    size_t length = strlen(key);
    const char *at = lines ? strstr(lines, key) : NULL;

    return at && (at == lines || at[-1] == ' ') && (!at[length] || at[length] == ' ');
}

static void printable_escape_value(json_t *value, const char *lines, const char *keep)
{
    const char *key;
    json_t *child;
    size_t i;

    if (json_is_string(value))
        printable_escape_string(value, keep);
    json_array_foreach (value, i, child)
        printable_escape_value(child, lines, keep);
    if (json_is_object(value))
        printable_escape_keys(value);
    json_object_foreach (value, key, child)
        printable_escape_value(child, lines, printable_is_listed_key(key, lines) ? "\n\t" : "");
}

void printable_json(json_t *value, const char *lines)
{
    printable_escape_value(value, lines, "");
}

size_t printable_bytes_of(const char *text, size_t most)
{
    size_t bytes = 0;

    for (; text[bytes]; bytes++)
        if ((text[bytes] & 0xc0) != 0x80 && most-- == 0)
            break;
    return bytes;
}

size_t printable_length(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

size_t printable_incomplete(const char *text, size_t bytes)
{
    for (size_t back = 1; back <= 3 && back <= bytes; back++) {
        unsigned char c = (unsigned char)text[bytes - back];
        if ((c & 0xc0) == 0x80)
            continue;
        return printable_sequence_length(c) > back ? back : 0;
    }
    return 0;
}
