/* Texts that fit a column: cut, or with breaks between words. */
#include <criterion/criterion.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>

#include "client/views/table.h"

static const char *made(void set(struct libscols_line *, size_t, const char *, int),
                        const char *text, int room)
{
    static struct libscols_table *table;
    struct libscols_line *line;

    scols_unref_table(table);
    table = table_create(1, "");
    table_column(table, "A", TABLE_WRAP);
    line = table_line(table);
    set(line, 0, text, room);
    return scols_cell_get_data(scols_line_get_cell(line, 0));
}

static void use_utf8(void)
{
    cr_assert(setlocale(LC_CTYPE, "C.UTF-8"));
}

TestSuite(table, .init = use_utf8);

Test(table, a_cell_that_fits_is_unchanged)
{
    cr_expect_str_eq(made(table_set_cut, "four", 4), "four");
    cr_expect_str_eq(made(table_set_cut, "", 1), "");
    cr_expect_str_eq(made(table_set_cut, "äöüß", 4), "äöüß", "characters count, not bytes");
    cr_expect_str_eq(made(table_set_wrapped, "one two", INT_MAX), "one two");
}

Test(table, a_cell_too_long_is_cut_between_characters)
{
    cr_expect_str_eq(made(table_set_cut, "fiveX", 4), "fiv…");
    cr_expect_str_eq(made(table_set_cut, "äöüßé", 4), "äöü…");
}

Test(table, columns_count_and_not_characters)
{
    cr_expect_str_eq(made(table_set_cut, "日本", 4), "日本");
    cr_expect_str_eq(made(table_set_cut, "日本語", 5), "日本…");
    cr_expect_str_eq(made(table_set_cut, "日本語", 4), "日…", "half a wide one is none");
    cr_expect_str_eq(made(table_set_cut, "a\u0301b\u0301c\u0301", 3), "a\u0301b\u0301c\u0301");
    cr_expect_str_eq(made(table_set_cut, "a\u0301b\u0301c\u0301d", 3), "a\u0301b\u0301…",
                     "marks stay with their letter");
    cr_expect_eq(table_width("日本 a\u0301"), 6);
}

Test(table, characters_the_locale_cannot_print_are_escaped)
{
    setlocale(LC_CTYPE, "C");
    cr_expect_eq(table_width("aä"), 9, "\\xc3\\xa4");
    cr_expect_str_eq(made(table_set_cut, "aäb", 6), "a\xc3~");
    cr_expect_str_eq(made(table_set_cut, "aäb", 10), "aäb");
}

Test(table, lines_break_between_words)
{
    cr_expect_str_eq(made(table_set_wrapped, "one two three", 7), "one two\nthree");
    cr_expect_str_eq(made(table_set_wrapped, "one two three", 6), "one\ntwo\nthree");
    cr_expect_str_eq(made(table_set_wrapped, "unbreakable words", 4), "unbr\neaka\nble\nword\ns");
    cr_expect_str_eq(made(table_set_wrapped, "a unbroken", 8), "a\nunbroken");
    cr_expect_str_eq(made(table_set_wrapped, "日本語", 3), "日\n本\n語", "between characters");
    cr_expect_str_eq(made(table_set_wrapped, "日", 1), "日", "one at least in a line");
    cr_expect_str_eq(made(table_set_wrapped, "one\n\ntwo three", 7), "one\n\ntwo\nthree",
                     "its own stay");
    cr_expect_str_eq(made(table_set_wrapped, "", 4), "");
}

/* The cells of the first line that are shown, as `room` columns show them, with | between them. */
static const char *fitted(int room, const int flags[4], const char *const texts[4])
{
    static char shown[512];
    struct libscols_table *table = table_create(1, "");
    size_t used = 0;

    for (size_t i = 0; i < 4; i++)
        table_column(table, "H", flags[i]);
    struct libscols_line *line = table_line(table);
    for (size_t i = 0; i < 4; i++)
        table_set(line, i, texts[i]);
    table_fit(table, room);
    for (size_t i = 0; i < 4; i++)
        if (!scols_column_is_hidden(scols_table_get_column(table, i)))
            used += (size_t)snprintf(shown + used, sizeof shown - used, "%s%s", used ? "|" : "",
                                     scols_cell_get_data(scols_line_get_cell(line, i)));
    scols_unref_table(table);
    return shown;
}

Test(table, the_table_fits_the_terminal)
{
    static const int flags[] = {TABLE_TRUNC, 0, 0, TABLE_WRAP | TABLE_SPARE},
                     cut[] = {TABLE_TRUNC, TABLE_RIGHT, TABLE_TRUNC, 0};
    static const char *const texts[] = {"a name of twenty two c", "10", "-",
                                        "this is a sentence of 33 letters."};

    cr_expect_str_eq(fitted(64, flags, texts),
                     "a name of twenty two c|10|-|this is a sentence of 33 letters.");
    cr_expect_str_eq(fitted(63, flags, texts),
                     "a name of twenty two c|10|this is a sentence of 33 letters.",
                     "what says nothing goes first");
    cr_expect_str_eq(fitted(60, flags, texts),
                     "a name of twenty two c|10|this is a sentence of 33\nletters.",
                     "then the longest gives");
    cr_expect_str_eq(fitted(46, flags, texts),
                     "a name of twenty tw…|10|this is a sentence\nof 33 letters.", "then both");
    cr_expect_str_eq(fitted(37, flags, texts), "a name of twenty two c|10",
                     "what is spare goes where few columns are left");
    cr_expect_str_eq(fitted(20, flags, texts), "a name of twent…|10");
    cr_expect_str_eq(fitted(3, cut, texts), "a name of…|10|this is a sentence of 33 letters.",
                     "there is a least");
}

Test(table, headings_are_cut_too)
{
    struct libscols_table *table = table_create(1, "");
    struct libscols_line *line;

    table_column(table, "a heading that is long", TABLE_TRUNC);
    line = table_line(table);
    table_set(line, 0, "1");
    table_fit(table, 12);
    cr_expect_str_eq(scols_cell_get_data(scols_column_get_header(scols_table_get_column(table, 0))),
                     "a heading t…");
    cr_expect_str_eq(scols_cell_get_data(scols_line_get_cell(line, 0)), "1");
    scols_unref_table(table);
}
