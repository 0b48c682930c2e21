/* Tables by libsmartcols: aligned, cut to the terminal's width, coloured where colours are wanted.
 */
#ifndef TRAIND_CLIENT_VIEWS_TABLE_H
#define TRAIND_CLIENT_VIEWS_TABLE_H

#include <libsmartcols.h>

#define TABLE_RIGHT SCOLS_FL_RIGHT
#define TABLE_TRUNC SCOLS_FL_TRUNC
#define TABLE_WRAP  SCOLS_FL_WRAP /* of texts by table_set_wrapped */

/* Of a column that a terminal of fewer columns has no room for. */
#define TABLE_WIDE 100
int table_if_wide(void); /* flags: hidden on a narrow terminal */

/* NULL: out of memory. Free with scols_unref_table. headings: show them. */
struct libscols_table *table_create(int headings);
void table_column(struct libscols_table *table, const char *heading, int flags);
struct libscols_line *table_line(struct libscols_table *table);

/* Sets column i of a line. A NULL line is fine. color: libsmartcols's name, or NULL. */
void table_set(struct libscols_line *line, size_t i, const char *text);
void table_set_color(struct libscols_line *line, size_t i, const char *color);

/* Columns that are left of the terminal beside `used` ones, or the least; no end of them where
 * standard output is no terminal: what goes to a file is not cut. */
#define TABLE_LEAST 20 /* for sentences */
int table_room(int used, int least);

/* Columns of a text in a table. */
int table_width(const char *text);

/* Sets a text cut to its room, or one with line breaks between words, in a TABLE_WRAP column. */
void table_set_cut(struct libscols_line *line, size_t i, const char *text, int room);
void table_set_wrapped(struct libscols_line *line, size_t i, const char *text, int room);

/* Prints it to standard output and frees it. */
void table_finish(struct libscols_table *table);

#endif
