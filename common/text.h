/*
 * Text for people: escaping of untrusted text, UTF-8, plurals, and suggestions for misspelt words.
 *
 * Text from other sources (file names, node reports, output of other programs) is escaped before it
 * is written to a terminal or log: control characters can move the cursor or forge a line, and
 * direction marks can make a line read as another one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Maximum length of the escape of one byte: "\u001b". */
#define TEXT_ESCAPE_GROWTH 6

/* Returns whether the text is UTF-8 without characters that text_escape would escape. */
bool text_is_printable(const char *text);
/*
 * Like text_is_printable, but also allows the characters in keep ("
 * \t").
 */
bool text_is_printable_but(const char *text, const char *keep);

/*
 * Writes text with JSON's escapes ("
 * ", "\u001b", "\u202e") for control characters (C0, DEL, C1), line and paragraph separators and
 * direction marks; a byte that is not UTF-8 becomes "\ufffd". Characters in keep ("
 * \t") are copied. If the result does not fit, it is truncated between characters; it is always
 * terminated. Returns the number of bytes written without the NUL.
 */
size_t text_escape(char *out, size_t capacity, const char *text, size_t bytes, const char *keep);

/* Like text_escape, but returns a new string, which the caller frees. */
char *text_escape_copy(const char *text, const char *keep);

/* Escapes all strings and keys of a JSON value in place; no other thread may use it. Newlines and
 * tabs are kept in strings whose key is in `lines`, for example "sbatch note" (NULL: none). */
void text_escape_json(json_t *value, const char *lines);

/* Number of characters, as in JSON Schema's maxLength, and bytes of the first `max` characters. */
size_t text_length(const char *text);
size_t text_bytes_of(const char *text, size_t max);

/* Number of bytes at the end that begin an incomplete UTF-8 character: 0 to 3. */
size_t text_incomplete(const char *text, size_t bytes);

/* Prints a label and a text, wrapped at `columns`; later lines are indented by `indent`. */
void text_wrap(FILE *out, int columns, const char *label, int indent, const char *text);

/* Prints a field of a CSV file, quoted as in RFC 4180. What a spreadsheet would take for a formula,
 * also behind apostrophes, gets another apostrophe in front: removing one restores the text. */
void text_print_csv(FILE *out, const char *text);

/* Ending of a counted noun: "1 worker", "2 workers". */
static inline const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Longer words have no match, which limits the time a hostile document can cost. */
#define SUGGEST_WORD_MAX 64

/* Finds the best of the candidates passed to text_suggest. Zero-initialise it and set word. */
struct suggest {
    const char *word;
    const char *best; /* borrowed; NULL: no candidate is similar enough */
    size_t distance;
};

void text_suggest(struct suggest *s, const char *candidate);

/* Returns the number of edits from a to b, where swapping neighbours counts as one (optimal string
 * alignment). Case, and "-" for "_", do not count. SUGGEST_WORD_MAX if a word is longer. */
size_t text_distance(const char *a, const char *b);
