#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

int terminal_columns(void); /* width of standard output; if it is not a terminal, COLUMNS or 80 */
int terminal_rows(void);    /* its height; if it is not a terminal, LINES or 24 */
bool terminal_utf8(void);   /* the locale's encoding is UTF-8 */
bool terminal_full(void);   /* standard input and output are a terminal with cursor movement */

/* Prints JSON; escapes control characters in strings. */
void print_json(const json_t *value); /* indented, with a final newline */
void print_json_line(FILE *out, const json_t *value);

/* Returns a value on one line, a string without its quotes. The caller frees it. */
char *print_value(const json_t *value);

/* Returns the width at which text is wrapped: the terminal's, at most 100 columns. */
int print_columns(void);

/* Prints a label and wrapped text, whose further lines are indented by `indent`. */
void print_wrapped(FILE *out, const char *label, int indent, const char *text);

/* Prints a line to standard output, wrapped between words on a terminal. */
void print_prose(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* With --json, prints {"file", "bytes"} for a file that was written. */
void print_file(const char *file, double bytes);
