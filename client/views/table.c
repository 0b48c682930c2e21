#include "client/views/table.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "client/cmd.h"
#include "client/views/print.h"
#include "common/xalloc.h"

/* Marks the headings of spare columns, because libsmartcols has no such flag. */
static char table_spare;

void table_column(struct libscols_table *table, const char *heading, int flags)
{
    struct libscols_column *column =
        must_alloc(scols_table_new_column(table, heading, 0, flags & ~TABLE_SPARE));

    if (flags & TABLE_WRAP) {
        scols_column_set_wrapfunc(column, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL);
        scols_column_set_safechars(column, "\n");
    }
    if (flags & TABLE_SPARE)
        scols_cell_set_userdata(scols_column_get_header(column), &table_spare);
}

struct libscols_table *table_create(int headings, const char *columns)
{
    struct libscols_table *table = must_alloc(scols_new_table());
    char heading[64];
    scols_table_enable_noheadings(table, !headings);
    scols_table_enable_colors(table, client.color);
    scols_table_set_column_separator(table, "  ");
    scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
    for (const char *at = columns; *at; at += *at == ',') {
        int flags = 0;
        size_t length = strcspn(at, ">~|?,");
        snprintf(heading, sizeof heading, "%.*s", (int)length, at);
        for (at += length; *at && *at != ','; at++)
            flags |= *at == '>'   ? TABLE_RIGHT
                     : *at == '~' ? TABLE_TRUNC
                     : *at == '|' ? TABLE_WRAP
                                  : TABLE_SPARE;
        table_column(table, heading, flags);
    }
    return table;
}

int table_if_wide(void)
{
    return isatty(STDOUT_FILENO) && terminal_columns() < TABLE_WIDE ? SCOLS_FL_HIDDEN : 0;
}

struct libscols_line *table_line(struct libscols_table *table)
{
    return must_alloc(scols_table_new_line(table, NULL));
}

void table_set(struct libscols_line *line, size_t i, const char *text)
{
    scols_line_set_data(line, i, text);
}

/* Returns the width of the first character as printed by libsmartcols, which writes bytes not
 * printable in the locale as \xHH. *bytes: its length. */
static int table_width_of_one(const char *text, size_t left, size_t *bytes)
{
    mbstate_t state = {0};
    wchar_t c;
    size_t length = mbrtowc(&c, text, left, &state);
    bool whole = length > 0 && length <= left;

    *bytes = whole ? length : 1;
    return whole && iswprint((wint_t)c) ? wcwidth(c) : 4 * (int)*bytes;
}

static int table_width_of(const char *text, size_t bytes)
{
    size_t length;
    int width = 0;

    for (size_t i = 0; i < bytes; i += length)
        width += table_width_of_one(text + i, bytes - i, &length);
    return width;
}

int table_width(const char *text)
{
    return table_width_of(text, strlen(text));
}

static void table_cell_set_cut(struct libscols_cell *cell, const char *text, int width)
{
    const char *dots = terminal_utf8() ? "…" : "~";
    size_t bytes = 0, length, all = strlen(text);

    if (table_width_of(text, all) <= width) {
        scols_cell_set_data(cell, text);
        return;
    }
    for (int left = width - 1; bytes < all; bytes += length)
        if ((left -= table_width_of_one(text + bytes, all - bytes, &length)) < 0)
            break;
    char *cut = xasprintf("%.*s%s", (int)bytes, text, dots);
    scols_cell_set_data(cell, cut);
    free(cut);
}

void table_set_cut(struct libscols_line *line, size_t i, const char *text, int width)
{
    table_cell_set_cut(scols_line_get_cell(line, i), text, width);
}

static size_t table_bytes_in(const char *word, size_t bytes, int width)
{
    size_t fit = 0, length = 0;

    for (int left = width; fit < bytes; fit += length)
        if ((left -= table_width_of_one(word + fit, bytes - fit, &length)) < 0)
            break;
    if (fit == 0)
        table_width_of_one(word, bytes, &fit);
    return fit;
}

/* Keeps existing line breaks. */
void table_set_wrapped(struct libscols_line *line, size_t i, const char *text, int width)
{
    char *wrapped = NULL;
    size_t bytes;
    FILE *out = must_alloc(open_memstream(&wrapped, &bytes));
    int left = width;

    while (*text) {
        size_t word = strcspn(text, " \n"), part;
        while (table_width_of(text, word) > left &&
               (part = table_bytes_in(text, word, left)) < word) {
            fprintf(out, "%.*s\n", (int)part, text);
            text += part;
            word -= part;
            left = width;
        }
        fwrite(text, 1, word, out);
        left -= table_width_of(text, word);
        text += word;
        if (!*text)
            break;
        bool ends = *text == '\n' || table_width_of(text + 1, strcspn(text + 1, " \n")) + 1 > left;
        fputc(ends ? '\n' : ' ', out);
        left = ends ? width : left - 1;
        text++;
    }
    fclose(out);
    table_set(line, i, must_alloc(wrapped));
    free(wrapped);
}

void table_setf(struct libscols_line *line, size_t i, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_set(line, i, text);
}

void table_row(struct libscols_table *table, const char *first, const char *second,
               const char *third)
{
    struct libscols_line *line = table_line(table);

    table_set(line, 0, first);
    table_set(line, 1, second);
    if (third)
        table_set(line, 2, third);
}

void table_set_color(struct libscols_line *line, size_t i, const char *color)
{
    if (color)
        scols_cell_set_color(scols_line_get_cell(line, i), color);
}

#define FIT_BETWEEN 2
#define FIT_FEW     16
#define FIT_LEAST   10

struct fit {
    struct libscols_table *table;
    size_t lines, columns;
    int *width; /* printed width; if hidden: -FIT_BETWEEN */
};

static const char *table_fit_text(const struct fit *fit, size_t line, size_t i)
{
    const char *text =
        scols_cell_get_data(scols_line_get_cell(scols_table_get_line(fit->table, line), i));

    return text ? text : "";
}

static int table_fit_width(const struct fit *fit, size_t i)
{
    struct libscols_column *column = scols_table_get_column(fit->table, i);
    const char *heading = scols_cell_get_data(scols_column_get_header(column));
    int widest = heading ? table_width(heading) : 0;

    if (scols_column_is_hidden(column))
        return -FIT_BETWEEN;
    for (size_t k = 0; k < fit->lines; k++) {
        int width = table_width(table_fit_text(fit, k, i));
        widest = width > widest ? width : widest;
    }
    return widest;
}

static bool table_fit_is_flexible(const struct fit *fit, size_t i)
{
    struct libscols_column *column = scols_table_get_column(fit->table, i);

    return scols_column_is_trunc(column) || scols_column_is_wrap(column);
}

static int table_fit_sum(const struct fit *fit, int max)
{
    int sum = -FIT_BETWEEN;

    for (size_t i = 0; i < fit->columns; i++)
        sum += FIT_BETWEEN +
               (fit->width[i] > max && table_fit_is_flexible(fit, i) ? max : fit->width[i]);
    return sum;
}

static void table_fit_hide(struct fit *fit, size_t i)
{
    struct libscols_column *column = scols_table_get_column(fit->table, i);

    scols_column_set_flags(column, scols_column_get_flags(column) | SCOLS_FL_HIDDEN);
    fit->width[i] = -FIT_BETWEEN;
}

/* Keeps the first column, which names the subject of the line. */
static void table_fit_hide_silent(struct fit *fit)
{
    for (size_t i = 1; i < fit->columns; i++) {
        bool silent = true;
        for (size_t k = 0; k < fit->lines && silent; k++)
            silent = !*table_fit_text(fit, k, i) || strcmp(table_fit_text(fit, k, i), "-") == 0;
        if (silent && fit->lines)
            table_fit_hide(fit, i);
    }
}

static bool table_fit_hide_spare(struct fit *fit)
{
    for (size_t i = fit->columns; i-- > 0;) {
        struct libscols_cell *heading =
            scols_column_get_header(scols_table_get_column(fit->table, i));
        if (fit->width[i] >= 0 && scols_cell_get_userdata(heading) == &table_spare) {
            table_fit_hide(fit, i);
            return true;
        }
    }
    return false;
}

static void table_fit_column(const struct fit *fit, size_t i, int width)
{
    struct libscols_column *column = scols_table_get_column(fit->table, i);
    struct libscols_cell *heading = scols_column_get_header(column);
    const char *words = scols_cell_get_data(heading);
    char *text = xstrdup(words ? words : "");

    table_cell_set_cut(heading, text, width);
    free(text);
    for (size_t k = 0; k < fit->lines; k++) {
        struct libscols_line *line = scols_table_get_line(fit->table, k);
        text = xstrdup(table_fit_text(fit, k, i));
        if (table_width(text) > width)
            (scols_column_is_wrap(column) ? table_set_wrapped : table_set_cut)(line, i, text,
                                                                               width);
        free(text);
    }
}

void table_fit(struct libscols_table *table, int width)
{
    struct fit fit = {.table = table,
                      .lines = scols_table_get_nlines(table),
                      .columns = scols_table_get_ncols(table)};

    int max = width > FIT_LEAST ? width : FIT_LEAST;

    fit.width = xcalloc(fit.columns + 1, sizeof *fit.width);
    for (size_t i = 0; i < fit.columns; i++)
        fit.width[i] = table_fit_width(&fit, i);
    bool fits = table_fit_sum(&fit, INT_MAX) <= width;
    if (!fits)
        table_fit_hide_silent(&fit);
    while (!fits && table_fit_sum(&fit, FIT_FEW) > width && table_fit_hide_spare(&fit))
        ;
    while (!fits && max > FIT_LEAST && table_fit_sum(&fit, max) > width)
        max--;
    for (size_t i = 0; !fits && i < fit.columns; i++)
        if (fit.width[i] > max && table_fit_is_flexible(&fit, i))
            table_fit_column(&fit, i, max);
    free(fit.width);
}

void table_finish_whole(struct libscols_table *table)
{
    scols_print_table(table);
    scols_unref_table(table);
}

void table_finish(struct libscols_table *table)
{
    if (isatty(STDOUT_FILENO))
        table_fit(table, terminal_columns());
    table_finish_whole(table);
}
