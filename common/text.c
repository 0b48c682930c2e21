#include "common/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"

static size_t text_sequence_length(unsigned char first)
{
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

static size_t text_decode(const char *text, size_t bytes, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text_sequence_length((unsigned char)text[0]);

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

/* Must match the patterns in the JSON Schema (common/job/job_text.c). */
static bool text_is_unsafe(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static bool text_is_kept(uint32_t c, const char *keep)
{
    return c && c < 0x80 && strchr(keep, (int)c);
}

bool text_is_printable(const char *text)
{
    return text_is_printable_but(text, "");
}

bool text_is_printable_but(const char *text, const char *keep)
{
    size_t left = strlen(text), length;
    uint32_t c;

    for (; left > 0; text += length, left -= length) {
        length = text_decode(text, left, &c);
        if (length == 0 || (text_is_unsafe(c) && !text_is_kept(c, keep)))
            return false;
    }
    return true;
}

static int text_escape_character(char *out, size_t capacity, uint32_t c)
{
    static const char letters[] = "\b\t\n\f\r", names[] = "btnfr";
    const char *at = c && c < 0x20 ? strchr(letters, (int)c) : NULL;

    return at ? snprintf(out, capacity, "\\%c", names[at - letters])
              : snprintf(out, capacity, "\\u%04x", c);
}

size_t text_escape(char *out, size_t capacity, const char *text, size_t bytes, const char *keep)
{
    char piece[16];
    size_t used = 0, length;
    uint32_t c = 0;

    for (size_t i = 0; i < bytes; i += length) {
        size_t wide = text_decode(text + i, bytes - i, &c);
        int put = 0;
        length = wide ? wide : 1;
        if (!wide)
            put = snprintf(piece, sizeof piece, "\\ufffd");
        else if (text_is_unsafe(c) && !text_is_kept(c, keep))
            put = text_escape_character(piece, sizeof piece, c);
        if (used + (put ? (size_t)put : length) >= capacity)
            break;
        memcpy(out + used, put ? piece : text + i, put ? (size_t)put : length);
        used += put ? (size_t)put : length;
    }
    if (capacity > 0)
        out[used] = '\0';
    return used;
}

char *text_escape_copy(const char *text, const char *keep)
{
    size_t bytes = strlen(text), capacity = TEXT_ESCAPE_GROWTH * bytes + 1;
    char *copy = xmalloc(capacity);

    text_escape(copy, capacity, text, bytes, keep);
    return copy;
}

static void text_escape_string(json_t *string, const char *keep)
{
    if (text_is_printable(json_string_value(string)))
        return;
    char *copy = text_escape_copy(json_string_value(string), keep);
    json_string_set(string, copy);
    free(copy);
}

static void text_escape_keys(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, key, value)
    {
        if (text_is_printable(key))
            continue;
        char *copy = text_escape_copy(key, "");
        json_object_set(object, copy, value);
        json_object_del(object, key);
        free(copy);
    }
}

static bool text_is_listed_key(const char *key, const char *lines)
{
    size_t length = strlen(key);
    const char *at = lines ? strstr(lines, key) : NULL;

    return at && (at == lines || at[-1] == ' ') && (!at[length] || at[length] == ' ');
}

static void text_escape_value(json_t *value, const char *lines, const char *keep)
{
    const char *key;
    json_t *child;
    size_t i;

    if (json_is_string(value))
        text_escape_string(value, keep);
    json_array_foreach (value, i, child)
        text_escape_value(child, lines, keep);
    if (json_is_object(value))
        text_escape_keys(value);
    json_object_foreach (value, key, child)
        text_escape_value(child, lines, text_is_listed_key(key, lines) ? "\n\t" : "");
}

void text_escape_json(json_t *value, const char *lines)
{
    text_escape_value(value, lines, "");
}

size_t text_bytes_of(const char *text, size_t max)
{
    size_t bytes = 0;

    for (; text[bytes]; bytes++)
        if ((text[bytes] & 0xc0) != 0x80 && max-- == 0)
            break;
    return bytes;
}

size_t text_length(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

size_t text_incomplete(const char *text, size_t bytes)
{
    for (size_t back = 1; back <= 3 && back <= bytes; back++) {
        unsigned char c = (unsigned char)text[bytes - back];
        if ((c & 0xc0) == 0x80)
            continue;
        return text_sequence_length(c) > back ? back : 0;
    }
    return 0;
}

static size_t text_min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static bool text_same(char a, char b)
{
    a = a == '-' ? '_' : (char)tolower((unsigned char)a);
    b = b == '-' ? '_' : (char)tolower((unsigned char)b);
    return a == b;
}

size_t text_distance(const char *a, const char *b)
{
    size_t rows[3][SUGGEST_WORD_MAX + 1];
    size_t m = strlen(a), n = strlen(b);

    if (m > SUGGEST_WORD_MAX || n > SUGGEST_WORD_MAX)
        return SUGGEST_WORD_MAX;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = text_min3(above[j] + 1, row[j - 1] + 1,
                               above[j - 1] + !text_same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && text_same(a[i - 1], b[j - 2]) && text_same(a[i - 2], b[j - 1]) &&
                two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[m % 3][n];
}

/* Omitted letters are more common than wrong ones: "modl" more likely means model than mode. */
static bool text_has_letters(const char *candidate, const char *word)
{
    for (; *candidate && *word; candidate++)
        word += text_same(*candidate, *word);
    return !*word;
}

void text_suggest(struct suggest *s, const char *candidate)
{
    size_t length = strlen(s->word), distance = text_distance(s->word, candidate);

    /* A prefix is a good guess, however many letters are missing. */
    if (length >= 2 && strncmp(s->word, candidate, length) == 0)
        distance = 1;
    if (distance > 2 || distance >= length)
        return;
    if (!s->best || distance < s->distance ||
        (distance == s->distance && text_has_letters(candidate, s->word) &&
         !text_has_letters(s->best, s->word))) {
        s->best = candidate;
        s->distance = distance;
    }
}

void text_wrap(FILE *out, int columns, const char *label, int indent, const char *text)
{
    int column = fprintf(out, "%s", label);

    for (bool first = true; *text; first = false) {
        int length = (int)strcspn(text, " ");
        if (column + 1 + length > columns && !first)
            column = fprintf(out, "\n%*s", indent, "") - 1;
        else if (!first)
            column += fprintf(out, " ");
        column += fprintf(out, "%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

void text_print_csv(FILE *out, const char *text)
{
    const char *first = text + strspn(text, "'");

    fputs(*first && strchr("=+-@\t\r", *first) ? "\"'" : "\"", out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}
