/*
 * Text for people: escaping of untrusted text, UTF-8, plurals, and suggestions for misspelt words.
 *
 * Text from elsewhere (file names, node reports, output of other programs) is escaped before it
 * goes to a terminal or a log: control characters can move the cursor or forge a line, and marks of
 * direction can make a line read as another.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The most bytes that one byte becomes: "\u001b". */
#define TEXT_ESCAPE_GROWTH 6

/* Whether the text is UTF-8 with nothing that text_escape would escape. */
bool text_is_printable(const char *text);
/* The same, also allowing the characters in keep ("\n\t"). */
bool text_is_printable_but(const char *text, const char *keep);

/* Writes text with JSON's escapes ("\n", "\u001b", "\u202e") for control characters (C0, DEL, C1),
 * line and paragraph separators and marks of direction; a byte that is not UTF-8 becomes "\ufffd".
 * Characters in keep ("\n\t") stay. Cuts between characters if room is short; always terminates.
 * Returns the bytes written without the NUL. */
size_t text_escape(char *out, size_t room, const char *text, size_t bytes, const char *keep);

/* The same as a new string, which the caller frees. */
char *text_escape_copy(const char *text, const char *keep);

/* Escapes all strings and keys of a JSON value in place; no other thread may use it. Newlines and
 * tabs stay in strings under the keys in `lines`, as "sbatch note" (NULL: none). */
void text_escape_json(json_t *value, const char *lines);

/* Characters, as JSON Schema's maxLength counts them, and bytes of the first `most` characters. */
size_t text_length(const char *text);
size_t text_bytes_of(const char *text, size_t most);

/* Bytes at the end that begin an incomplete UTF-8 character: 0 to 3. */
size_t text_incomplete(const char *text, size_t bytes);

/* Prints a label and words over lines of so many columns; those behind the first begin at column
 * `indent`. */
void text_wrap(FILE *out, int columns, const char *label, int indent, const char *text);

/* The ending of a counted noun: "1 worker", "2 workers". */
static inline const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Longer words match nothing: bounds what a hostile document can cost. */
#define SUGGEST_WORD_MAX 64

/* The best of the candidates passed to text_suggest. Zero-initialise, then set word. */
struct suggest {
    const char *word;
    const char *best; /* borrowed; NULL: none is near enough */
    size_t distance;
};

void text_suggest(struct suggest *s, const char *candidate);

/* Edits from a to b, a swap of neighbours counting as one (optimal string alignment); case and "-"
 * for "_" cost nothing. SUGGEST_WORD_MAX if a word is longer than that. */
size_t text_distance(const char *a, const char *b);
