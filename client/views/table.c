#include "client/views/table.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/views/terminal.h"

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
    struct libscols_column *column =
        table ? scols_table_new_column(table, heading, 0, flags) : NULL;

    if (column && (flags & TABLE_WRAP)) {
        scols_column_set_wrapfunc(column, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL);
        scols_column_set_safechars(column, "\n");
    }
}

int table_if_wide(void)
{
    return isatty(STDOUT_FILENO) && terminal_columns() < TABLE_WIDE ? SCOLS_FL_HIDDEN : 0;
}

int table_room(int used)
{
    int room = terminal_columns() - used;

    return !isatty(STDOUT_FILENO) ? INT_MAX : room > 20 ? room : 20;
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

/* Characters, as columns: a wide one in a job's name moves no more than its line. */
static int width_of(const char *text, size_t bytes)
{
    int width = 0;

    for (size_t i = 0; i < bytes; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

void table_set_cut(struct libscols_line *line, size_t i, const char *text, int room)
{
    const char *dots = terminal_utf8() ? "…" : "~";
    char *cut;
    size_t bytes = 0;

    if (width_of(text, strlen(text)) <= room) {
        table_set(line, i, text);
        return;
    }
    for (int left = room - 1; text[bytes] && (left > 0 || (text[bytes] & 0xc0) == 0x80); bytes++)
        left -= (text[bytes + 1] & 0xc0) != 0x80;
    if (asprintf(&cut, "%.*s%s", (int)bytes, text, dots) < 0)
        return;
    table_set(line, i, cut);
    free(cut);
}

void table_set_wrapped(struct libscols_line *line, size_t i, const char *text, int room)
{
    char *wrapped = strdup(text), *at = wrapped;
    int used = 0;

    while (wrapped && *at) {
        size_t word = strcspn(at, " ");
        used += width_of(at, word);
        at += word;
        size_t next = *at ? strcspn(at + 1, " ") : 0;
        if (*at && used + 1 + width_of(at + 1, next) > room) {
            *at = '\n';
            used = 0;
        } else {
            used++;
        }
        at += *at != '\0';
    }
    table_set(line, i, wrapped);
    free(wrapped);
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
