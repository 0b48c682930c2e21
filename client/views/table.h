#pragma once

#include <libsmartcols.h>

#define TABLE_RIGHT SCOLS_FL_RIGHT

/* If a table is wider than the terminal, columns without a value ("" or "-" in every line) are
 * hidden, and flexible columns share the remaining width. Files and pipes get the whole table. */
#define TABLE_TRUNC SCOLS_FL_TRUNC /* flexible: truncated */
#define TABLE_WRAP  SCOLS_FL_WRAP  /* flexible: wrapped between words */
#define TABLE_SPARE (1 << 30)      /* may be hidden */

/* Terminals narrower than this hide table_if_wide columns. */
#define TABLE_WIDE 100
int table_if_wide(void); /* flags for such a column */

/* headings: whether to print them. columns: the headings, "ID>,NAME~,WHAT|,REASON~?" with flags: >
 * right-aligned, ~ truncated, | wrapped, ? spare. Free with scols_unref_table. */
struct libscols_table *table_create(int headings, const char *columns);
void table_column(struct libscols_table *table, const char *heading, int flags);
struct libscols_line *table_line(struct libscols_table *table);

/* color: libsmartcols' name, or NULL. */
void table_set(struct libscols_line *line, size_t i, const char *text);
void table_setf(struct libscols_line *line, size_t i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_set_color(struct libscols_line *line, size_t i, const char *color);

void table_row(struct libscols_table *table, const char *first, const char *second,
               const char *third);

int table_width(const char *text);

void table_set_cut(struct libscols_line *line, size_t i, const char *text, int width);
void table_set_wrapped(struct libscols_line *line, size_t i, const char *text, int width);

/* Limits a table to this width, as far as its flexible columns allow. */
void table_fit(struct libscols_table *table, int width);

/* Prints to standard output, fitted to a terminal, and frees the table. */
void table_finish(struct libscols_table *table);

/* Does the same without fitting. */
void table_finish_whole(struct libscols_table *table);
