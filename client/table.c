#include "client/table.h"

#include "client/cmd.h"

struct libscols_table *table_create(int headings)
{
    struct libscols_table *table = scols_new_table();

    if (!table)
        return NULL;
    scols_table_enable_noheadings(table, !headings);
    scols_table_enable_colors(table, client.color);
    scols_table_set_column_separator(table, "  ");
    return table;
}

void table_column(struct libscols_table *table, const char *heading, int flags)
{
    if (table)
        scols_table_new_column(table, heading, 0, flags);
}

struct libscols_line *table_line(struct libscols_table *table)
{
    return table ? scols_table_new_line(table, NULL) : NULL;
}

void table_set(struct libscols_line *line, size_t i, const char *text)
{
    if (line)
        scols_line_set_data(line, i, text);
}

void table_set_color(struct libscols_line *line, size_t i, const char *color)
{
    if (line && color)
        scols_cell_set_color(scols_line_get_cell(line, i), color);
}

void table_finish(struct libscols_table *table)
{
    if (!table)
        return;
    scols_print_table(table);
    scols_unref_table(table);
}
