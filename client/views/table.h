/* Tables by libsmartcols: aligned, cut to the terminal's width, coloured where that is wanted. */
#pragma once

#include <libsmartcols.h>

#define TABLE_RIGHT SCOLS_FL_RIGHT

/* Where a table is wider than the terminal, columns that say nothing ("" or "-" in every line) are
 * left out, then those of these flags share what the others leave. What goes to a file or a pipe is
 * whole. */
#define TABLE_TRUNC SCOLS_FL_TRUNC /* cut */
#define TABLE_WRAP  SCOLS_FL_WRAP  /* broken between words */
#define TABLE_SPARE (1 << 30)      /* left out rather than give the others too few columns */

/* Of a column that a terminal of fewer columns has no room for. */
#define TABLE_WIDE 100
int table_if_wide(void); /* flags: hidden on a narrow terminal */

/* NULL: out of memory. Free with scols_unref_table. headings: show them. columns: their headings,
 * as "ID>,NAME~,WHAT|,REASON~?"; what stands behind one is a flag: > right, ~ cut, | wrapped,
 * ? spare. */
struct libscols_table *table_create(int headings, const char *columns);
void table_column(struct libscols_table *table, const char *heading, int flags);
struct libscols_line *table_line(struct libscols_table *table);

/* Sets column i of a line. A NULL line is fine. color: libsmartcols's name, or NULL. */
void table_set(struct libscols_line *line, size_t i, const char *text);
void table_set_color(struct libscols_line *line, size_t i, const char *color);

/* A line of these first cells; third NULL: it stays empty, or there is none. */
void table_row(struct libscols_table *table, const char *first, const char *second,
               const char *third);

/* Columns of a text in a table. */
int table_width(const char *text);

/* Sets a text cut to so many columns, or one with line breaks, between words where they fit. */
void table_set_cut(struct libscols_line *line, size_t i, const char *text, int room);
void table_set_wrapped(struct libscols_line *line, size_t i, const char *text, int room);

/* Makes a table fit so many columns, as far as its columns' flags let it. */
void table_fit(struct libscols_table *table, int room);

/* Prints it to standard output, fitted to a terminal, and frees it. */
void table_finish(struct libscols_table *table);

/* Likewise, as it is. */
void table_finish_whole(struct libscols_table *table);
