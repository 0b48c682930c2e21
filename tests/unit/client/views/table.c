/* Texts that fit a column: cut, or with breaks between words. */
#include <criterion/criterion.h>
#include <limits.h>
#include <locale.h>

#include "client/views/table.h"

static const char *made(void set(struct libscols_line *, size_t, const char *, int),
                        const char *text, int room)
{
    static struct libscols_table *table;
    struct libscols_line *line;

    scols_unref_table(table);
    table = table_create(1);
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

Test(table, what_fits_stays)
{
    cr_expect_str_eq(made(table_set_cut, "four", 4), "four");
    cr_expect_str_eq(made(table_set_cut, "", 1), "");
    cr_expect_str_eq(made(table_set_cut, "äöüß", 4), "äöüß", "characters count, not bytes");
    cr_expect_str_eq(made(table_set_wrapped, "one two", INT_MAX), "one two");
}

Test(table, what_does_not_is_cut_between_characters)
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

Test(table, what_the_locale_cannot_print_is_escaped)
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
    cr_expect_str_eq(made(table_set_wrapped, "unbreakable words", 4), "unbreakable\nwords");
    cr_expect_str_eq(made(table_set_wrapped, "", 4), "");
}
