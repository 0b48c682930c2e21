/* Printing JSON and prose. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Nothing in the JSON is what a terminal would obey. */
void print_json(const json_t *value); /* indented, with a final newline */
void print_json_line(FILE *out, const json_t *value);

/* A value in one line, as a person writes it: a string without its quotes. The caller frees it. */
char *print_value(const json_t *value);

/* text_wrap over the columns of the terminal, at most 100. */
int print_columns(void);
void print_wrapped(FILE *out, const char *label, int indent, const char *text);

/* A line to standard output; on a terminal that is narrower it breaks between words. */
void print_prose(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* {"file", "bytes"}: what --json says of a file that was written. */
void print_file(const char *file, double bytes);
