#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prep/cmd.h"
#include "prep/prep.h"

/* ---- which records */

static const struct record_choice all_records = {.to_end = true, .any_class = true};

/* N, N-M or N- */
static int cmd_show_parse_records(const struct command_option *option, const char *text,
                                  void *field, struct error *e)
{
    struct record_choice *c = field;
    char *end, *dash;

    errno = 0;
    c->first = c->last = strtoll(text, &end, 10);
    dash = end;
    if (*dash == '-' && dash[1])
        c->last = strtoll(dash + 1, &end, 10);
    else if (*dash == '-')
        end++;
    c->to_end = *dash == '-' && !dash[1];
    if (errno || *text < '0' || *text > '9' || *end || (*dash == '-' && dash[1] == '-') ||
        c->last < c->first)
        return error_set(e, ERR_USAGE, "--%s %s: expected N, N-M or N-, as 7, 7-9 or 7-",
                         option->name, text);
    return 0;
}

static int cmd_show_parse_class(const struct command_option *option, const char *text, void *field,
                                struct error *e)
{
    struct record_choice *c = field;
    char *end;

    errno = 0;
    long class = strtol(text, &end, 10);
    if (errno || end == text || *end || class < 0 || class > INT32_MAX)
        return error_set(e, ERR_USAGE, "--%s %s: expected a whole number from 0 to %d",
                         option->name, text, INT32_MAX);
    c->class = (int32_t) class;
    c->any_class = false;
    return 0;
}

static int cmd_show_parse_role(const struct command_option *option, const char *text, void *field,
                               struct error *e)
{
    struct record_choice *c = field;

    if (strcmp(text, "train") != 0 && strcmp(text, "validation") != 0)
        return error_set(e, ERR_USAGE, "--%s %s: expected train or validation", option->name, text);
    c->role = strcmp(text, "train") == 0 ? DATASET_TRAIN : DATASET_EVAL;
    return 0;
}

/* clang-format off */
#define CHOICE_OPTIONS(type) \
    {.name = "role", .value = "ROLE", .kind = OPTION_TAKEN, .offset = offsetof(type, choice), .parse = cmd_show_parse_role, \
     .help = "train (default) or validation, if the folder contains both"}, \
    {.name = "record", .letter = 'r', .value = "N[-[M]]", .kind = OPTION_TAKEN, .offset = offsetof(type, choice), .parse = cmd_show_parse_records, \
     .help = "record N, or N to M, or from N on (default: all)"}, \
    {.name = "class", .value = "C", .kind = OPTION_TAKEN, .offset = offsetof(type, choice), .parse = cmd_show_parse_class, \
     .help = "only records of this class, counted from 0"}, \
    {.name = "limit", .letter = 'n', .value = "N", .kind = OPTION_INT64, .offset = offsetof(type, choice.limit), .least = 1, .most = INT64_MAX, \
     .help = "at most this many (default: all)"}

/* ---- show */

static const struct command_option show_table[] = {
    {.name = "json", .kind = OPTION_FLAG, .offset = offsetof(struct show_options, json),
     .help = "print one JSON object per line"},
    CHOICE_OPTIONS(struct show_options),
    {0},
};
/* clang-format on */

int cmd_show(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep show",
        .usage = "Usage: train-prep show [OPTION...] DIR",
        .options = show_table,
        .common = command_line_common,
        .operand = "DIR",
        .operand_offset = offsetof(struct show_options, dir),
        .doc = "Lists the records of a data set in file order; checksums are verified.",
    };
    struct show_options o = {.choice = all_records};

    int rc = command_line_read(&line, argc, argv, &o);
    return rc >= 0 ? rc : show(&o, e);
}

/* ---- extract */

/* clang-format off */
static const struct command_option extract_table[] = {
    {.name = "out", .letter = 'o', .value = "FOLDER", .kind = OPTION_TEXT, .offset = offsetof(struct extract_options, out), .required = true,
     .help = "output folder"},
    {.name = "json", .kind = OPTION_FLAG, .offset = offsetof(struct extract_options, json),
     .help = "print one JSON object per written file"},
    CHOICE_OPTIONS(struct extract_options),
    {0},
};
/* clang-format on */

int cmd_extract(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep extract",
        .usage = "Usage: train-prep extract [OPTION...] DIR",
        .options = extract_table,
        .common = command_line_common,
        .operand = "DIR",
        .operand_offset = offsetof(struct extract_options, dir),
        .doc = "Writes the images of a data set as JPEG files, just as they are stored.",
    };
    struct extract_options o = {.choice = all_records};

    int rc = command_line_read(&line, argc, argv, &o);
    return rc >= 0 ? rc : extract(&o, e);
}
