#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

int terminal_columns(void); /* of standard output; if it is no terminal, COLUMNS or 80 */
int terminal_rows(void);    /* likewise, LINES or 24 */
bool terminal_utf8(void);   /* the locale's encoding is UTF-8 */
bool terminal_full(void);   /* standard input and output are a terminal with cursor movement */

/* Control characters in strings are escaped. */
void print_json(const json_t *value); /* indented, with a final newline */
void print_json_line(FILE *out, const json_t *value);

/* A value in one line, a string without its quotes. The caller frees it. */
char *print_value(const json_t *value);

/* The width that text is wrapped at: the terminal's, at most 100 columns. */
int print_columns(void);

/* A label and text, wrapped; further lines are indented by `indent`. */
void print_wrapped(FILE *out, const char *label, int indent, const char *text);

/* A line to standard output, wrapped between words on a terminal. */
void print_prose(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* {"file", "bytes"}: a file that was written, under --json. */
void print_file(const char *file, double bytes);
