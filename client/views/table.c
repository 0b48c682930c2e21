#include "client/views/table.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

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

int table_room(int used, int least)
{
    int room = terminal_columns() - used;

    return !isatty(STDOUT_FILENO) ? INT_MAX : room > least ? room : least;
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

/* The columns of the first character as libsmartcols prints it, which escapes what the locale
 * cannot print, each byte as \xHH. *bytes: its length. */
static int width_of_one(const char *text, size_t left, size_t *bytes)
{
    mbstate_t state = {0};
    wchar_t c;
    size_t length = mbrtowc(&c, text, left, &state);
    bool whole = length > 0 && length <= left;

    *bytes = whole ? length : 1;
    return whole && iswprint((wint_t)c) ? wcwidth(c) : 4 * (int)*bytes;
}

static int width_of(const char *text, size_t bytes)
{
    size_t length;
    int width = 0;

    for (size_t i = 0; i < bytes; i += length)
        width += width_of_one(text + i, bytes - i, &length);
    return width;
}

int table_width(const char *text)
{
    return width_of(text, strlen(text));
}

void table_set_cut(struct libscols_line *line, size_t i, const char *text, int room)
{
    const char *dots = terminal_utf8() ? "…" : "~";
    char *cut;
    size_t bytes = 0, length, all = strlen(text);

    if (width_of(text, all) <= room) {
        table_set(line, i, text);
        return;
    }
    for (int left = room - 1; bytes < all; bytes += length)
        if ((left -= width_of_one(text + bytes, all - bytes, &length)) < 0)
            break;
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
