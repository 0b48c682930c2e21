/*
 * Text from elsewhere (file names, node reports, other programs' words) on its way to a terminal or
 * a log: control characters, which can move the cursor or forge a line, and the characters that
 * turn the direction of writing, which can make a line read as another, are escaped.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The most that one byte of text grows to: "\u001b". */
#define PRINTABLE_GROWTH 6

/* True if the text is UTF-8 with nothing in it that printable_escape would escape. */
bool printable_is(const char *text);
/* The same where the characters of keep ("\n\t") may be there too. */
bool printable_is_but(const char *text, const char *keep);

/* Writes text with JSON's escapes ("\n", "\u001b", "\u202e") for control characters (C0, DEL and
 * C1), separators of lines and paragraphs, and marks of direction; a byte that is not UTF-8's
 * becomes "\ufffd", the replacement character. A character in keep ("\n\t") stays. What does not
 * fit is cut between characters; the end is a NUL. Returns the bytes written without it. */
size_t printable_escape(char *out, size_t room, const char *text, size_t bytes, const char *keep);

/* The same as a new string, which the caller frees. Aborts without memory. */
char *printable_copy(const char *text, const char *keep);

/* Escapes all strings and keys in a JSON value, in place; it must be nobody else's. Newlines stay
 * in the strings under the keys in `lines`, "sbatch note" (NULL: none). */
void printable_json(json_t *value, const char *lines);

/* Characters of UTF-8, as JSON Schema's maxLength counts them, and bytes of the first `most`. */
size_t printable_length(const char *text);
size_t printable_bytes_of(const char *text, size_t most);

/* Bytes at the end of text that begin a UTF-8 character which is not complete: 0 to 3. */
size_t printable_incomplete(const char *text, size_t bytes);
