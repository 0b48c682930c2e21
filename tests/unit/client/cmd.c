/* The table of commands: parsing, and the man page says the same. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>

#include "client/cmd.h"
#include "common/system/file.h"

TestSuite(cmd, .init = cr_redirect_stdout);

static int parse_command(struct cmd_args *args, const char *words)
{
    static char copy[256];
    static char *argv[16];
    int argc = 0;

    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return cmd_parse(args, argc, argv);
}

Test(cmd, options_may_follow_operands)
{
    struct cmd_args args;

    cr_assert_eq(parse_command(&args, "metrics 3 --csv --names=loss,lr --json --server http://h:1"),
                 -1);
    cr_expect_eq(args.operand_count, 1);
    cr_expect_str_eq(args.operands[0], "3");
    cr_expect(cmd_flag(&args, "csv"));
    cr_expect_str_eq(cmd_value(&args, "names"), "loss,lr");
    cr_expect(client.json);
    cr_expect_str_eq(client.server, "http://h:1");
}

Test(cmd, an_option_not_given_is_null)
{
    struct cmd_args args;

    cr_assert_eq(parse_command(&args, "list"), -1);
    cr_expect_null(cmd_value(&args, "state"));
    cr_expect_not(cmd_flag(&args, "limit"));
}

Test(cmd, usage_errors_exit_with_2, .init = cr_redirect_stderr)
{
    static const char *const wrong[] = {"show",         "show 1 2",  "list --sttae running",
                                        "list --limit", "logs -x 3", "show --csv 3"};
    struct cmd_args args;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_eq(parse_command(&args, wrong[i]), 2, "%s", wrong[i]);
}

/* Nobody answers there. */
static void no_server(void)
{
    client.server = "unix:/nonexistent/traind.sock";
}

Test(cmd, ids_are_positive_numbers_or_names, .init = no_server)
{
    struct error e;
    long id;

    cr_expect_eq(cmd_job_id("17", &id, &e), 0);
    cr_expect_eq(id, 17);
    static const char *const wrong[] = {"", "0", "-1", "01", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_eq(cmd_job_id(wrong[i], &id, &e), -ERR_USAGE, "%s", wrong[i]);
    static const char *const names[] = {"3x", "x", "latest", "2024-11-22 a"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        cr_expect_eq(cmd_job_id(names[i], &id, &e), -ERR_UNREACHABLE, "%s", names[i]);
}

/* What a reader copies from the help, by the words that a shell makes of it. */
Test(cmd, the_example_of_every_command_parses, .init = cr_redirect_stderr)
{
    for (size_t i = 0; cmd_at(i); i++) {
        struct cmd_args args;
        wordexp_t words;
        cr_assert(cmd_at(i)->example, "%s has no example", cmd_at(i)->name);
        cr_assert_eq(wordexp(cmd_at(i)->example, &words, WRDE_NOCMD | WRDE_UNDEF), 0, "%s",
                     cmd_at(i)->example);
        cr_assert_gt(words.we_wordc, 1);
        cr_expect_str_eq(words.we_wordv[0], "trainctl");
        cr_expect_str_eq(words.we_wordv[1], cmd_at(i)->name);
        cr_expect_eq(cmd_parse(&args, (int)words.we_wordc - 1, words.we_wordv + 1), -1, "%s",
                     cmd_at(i)->example);
        wordfree(&words);
    }
}

/* Every option row of the table stands in the man page as "It Fl ... -name". */
static void expect_option(const char *begin, const char *end, const struct command_option *option,
                          const char *cmd)
{
    char row[128], with_letter[160];

    snprintf(row, sizeof row, "Fl -%s%s%s\n", option->name, option->value ? " Ar " : "",
             option->value ? option->value : "");
    if (option->letter)
        snprintf(with_letter, sizeof with_letter, ".It Fl %c , %s", option->letter, row);
    else
        snprintf(with_letter, sizeof with_letter, ".It %s", row);
    const char *found = strstr(begin, with_letter);
    cr_expect(found && found < end, "man/trainctl.1 lacks, under %s: %s", cmd, with_letter);
}

static void expect_command(const char *page, const struct cmd *cmd)
{
    char row[64];

    snprintf(row, sizeof row, "\n.It Cm %s ", cmd->name);
    const char *begin = strstr(page, row);
    if (!begin) { /* one without operands */
        snprintf(row, sizeof row, "\n.It Cm %s\n", cmd->name);
        begin = strstr(page, row);
    }
    cr_expect(begin, "man/trainctl.1 lacks the command %s", cmd->name);
    if (!begin)
        return;
    const char *end = begin;
    do { /* a command may have several lines of its own */
        end = strstr(end + 1, "\n.It Cm ");
    } while (end && strncmp(end, row, strlen(row)) == 0);
    if (!end)
        end = page + strlen(page);
    for (size_t i = 0; i < CMD_OPTIONS_MAX && cmd->options[i].name; i++)
        expect_option(begin, end, &cmd->options[i], cmd->name);
}

/* The same order under the same titles: who has read one finds things in the other. */
static void expect_order(const char *commands)
{
    const char *at = commands;
    char row[64];

    for (size_t i = 0; at && cmd_at(i); i++) {
        if (cmd_title(cmd_at(i)->name)) {
            snprintf(row, sizeof row, "\n.Ss %s\n", cmd_title(cmd_at(i)->name));
            at = strstr(at, row);
            cr_expect(at, "man/trainctl.1 lacks%s in its place", row);
        }
        snprintf(row, sizeof row, "\n.It Cm %s", cmd_at(i)->name);
        at = at ? strstr(at, row) : NULL;
        cr_expect(at, "man/trainctl.1 has %s elsewhere than the table", cmd_at(i)->name);
    }
}

Test(cmd, numbers_are_digits, .init = no_server)
{
    static const char *const wrong[] = {
        "",    " 1", "1 ",  "+1",   "\t1", "01", "-",    "-01",
        "- 1", "x",  "1.5", "0x10", "1e3", "1,", "9e18", "99999999999999999999"};
    struct error e;
    long n;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_expect_eq(cmd_number(wrong[i], "job", -10, 1000, &n, &e), -(int)ERR_USAGE, "\"%s\"",
                     wrong[i]);
        cr_expect_lt(cmd_job_id(wrong[i], &n, &e), 0, "\"%s\"", wrong[i]);
    }
    cr_expect_str_eq((cmd_number(" 1", "job", 1, 9, &n, &e), e.text),
                     "--job must be a number from 1 to 9, not \" 1\"");
    cr_expect(cmd_number("-10", "to", -10, 9, &n, &e) == 0 && n == -10);
    cr_expect(cmd_number("0", "get", 0, 9, &n, &e) == 0 && n == 0);
    cr_expect(cmd_number("9", "job", 1, 9, &n, &e) == 0 && n == 9);
    cr_expect_lt(cmd_number("10", "job", 1, 9, &n, &e), 0);
    cr_expect_lt(cmd_job_id("-1", &n, &e), 0);
}

Test(cmd, the_man_page_lists_what_the_table_has)
{
    const char *top = getenv("top_srcdir");
    char path[4096], *page;
    size_t bytes;
    struct error e = {0};

    snprintf(path, sizeof path, "%s/man/trainctl.1", top ? top : ".");
    cr_assert_eq(file_read(path, 1 << 20, &page, &bytes, &e), 0, "%s", e.text);
    const char *commands = strstr(page, ".Sh COMMANDS");
    cr_assert_not_null(commands);
    for (size_t i = 0; cmd_at(i); i++)
        expect_command(commands, cmd_at(i));
    expect_order(commands);
    for (size_t i = 0; cmd_common_at(i); i++)
        expect_option(page, commands, cmd_common_at(i), "the common options");
    free(page);
}
