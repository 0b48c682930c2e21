/* What trainctl's own tests do not reach: values stored into a struct. */
#include "common/system/command_line.h"

#include <criterion/criterion.h>

struct fields {
    const char *name, *folder;
    int64_t count;
    int level;
    bool loud;
};

static const struct command_option options[] = {
    {.name = "name",
     .letter = 'n',
     .value = "NAME",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct fields, name),
     .required = true},
    {.name = "count",
     .value = "N",
     .kind = OPTION_INT64,
     .offset = offsetof(struct fields, count),
     .min = -3,
     .max = INT64_MAX},
    {.name = "level",
     .value = "N",
     .kind = OPTION_INT,
     .offset = offsetof(struct fields, level),
     .min = 1,
     .max = 9},
    {.name = "loud",                 .kind = OPTION_FLAG, .offset = offsetof(struct fields, loud)},
    {0                 }
};
static const struct command_line line = {.program = "p",
                                         .options = options,
                                         .operand = "DIR",
                                         .operand_offset = offsetof(struct fields, folder)};
static const struct command_option *ended;
static struct error e;

/* Reads up to six arguments. */
static int parse(struct fields *f, const char *const words[6])
{
    char *argv[8] = {(char *)"p"};
    int argc = 1;

    *f = (struct fields){.level = 5};
    for (; argc < 7 && words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    return command_line_parse(&line, argc, argv, f, &ended, &e);
}

Test(command_line, values_are_stored_and_others_keep_their_defaults)
{
    struct fields f;

    cr_assert_geq(parse(&f, (const char *[6]){"here", "-n", "a", "--count=-3", "--loud"}), 0, "%s",
                  e.text);
    cr_assert_str_eq(f.name, "a");
    cr_assert_str_eq(f.folder, "here");
    cr_assert_eq(f.count, -3);
    cr_assert_eq(f.level, 5);
    cr_assert(f.loud);
    cr_assert_null(ended);
}

Test(command_line, help_ends_it_before_anything_is_required)
{
    struct fields f;

    for (size_t i = 0; i < 2; i++) {
        cr_assert_geq(parse(&f, (const char *[6]){i ? "-?" : "--help", "--nonsense"}), 0, "%s",
                      e.text);
        cr_assert_str_eq(ended->name, "help");
    }
}

Test(command_line, errors_say_what_would_be_right)
{
    static const struct {
        const char *words[6], *message;
    } cases[] = {
        {{"here"},                                "--name is missing"                              },
        {{"-n", "a"},                             "DIR is missing"                                 },
        {{"-n", "a", "b", "c"},                   "unexpected argument \"c\""                      },
        {{"-n"},                                  "-n needs a value"                               },
        {{"--name"},                              "--name needs a value"                           },
        {{"--loud=1"},                            "--loud takes no value"                          },
        {{"--laud"},                              "there is no option --laud; did you mean --loud?"},
        {{"-q"},                                  "there is no option -q"                          },
        {{"--level", "10"},                       "--level 10: expected a whole number from 1 to 9"},
        {{"--level", "x"},                        "--level x: expected a whole number from 1 to 9" },
        {{"--count", "9223372036854775808", "x"},
         "--count 9223372036854775808: expected a whole number from -3 to 9223372036854775807"     },
    };
    struct fields f;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(parse(&f, cases[i].words), -ERR_USAGE, "%s", cases[i].message);
        cr_assert_str_eq(e.text, cases[i].message);
    }
}
