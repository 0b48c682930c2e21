#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prep/cmd.h"
#include "prep/prep.h"

/* ---- which records */

static const struct record_choice all_records = {.to_end = true, .any_class = true};

/* N, N-M or N- */
static void cmd_show_parse_records(struct argp_state *state, const char *text, void *field)
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
        argp_error(state, "--record %s: expected N, N-M or N-, as 7, 7-9 or 7-", text);
}

static void cmd_show_parse_class(struct argp_state *state, const char *text, void *field)
{
    struct record_choice *c = field;
    char *end;

    errno = 0;
    long class = strtol(text, &end, 10);
    if (errno || end == text || *end || class < 0 || class > INT32_MAX)
        argp_error(state, "--class %s: expected a whole number from 0 to %d", text, INT32_MAX);
    c->class = (int32_t) class;
    c->any_class = false;
}

static void cmd_show_parse_role(struct argp_state *state, const char *text, void *field)
{
    struct record_choice *c = field;

    if (strcmp(text, "train") != 0 && strcmp(text, "validation") != 0)
        argp_error(state, "--role %s: expected train or validation", text);
    c->role = strcmp(text, "train") == 0 ? DATASET_TRAIN : DATASET_EVAL;
}

/* clang-format off */
#define CHOICE_OPTIONS(type) \
    {.name = "role", .value = "ROLE", .kind = CMD_OWN, .offset = offsetof(type, choice), .parse = cmd_show_parse_role, \
     .help = "train (default) or validation, if the folder contains both"}, \
    {.name = "record", .letter = 'r', .value = "N[-[M]]", .kind = CMD_OWN, .offset = offsetof(type, choice), .parse = cmd_show_parse_records, \
     .help = "record N, or N to M, or from N on (default: all)"}, \
    {.name = "class", .value = "C", .kind = CMD_OWN, .offset = offsetof(type, choice), .parse = cmd_show_parse_class, \
     .help = "only records of this class, counted from 0"}, \
    {.name = "limit", .letter = 'n', .value = "N", .kind = CMD_INT64, .offset = offsetof(type, choice.limit), .least = 1, .most = INT64_MAX, \
     .help = "at most this many (default: all)"}

/* ---- show */

static const struct cmd_option show_table[] = {
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct show_options, json),
     .help = "print one JSON object per line"},
    CHOICE_OPTIONS(struct show_options),
    {0},
};
/* clang-format on */

int cmd_show(int argc, char **argv, struct error *e)
{
    static const struct cmd_line line = {
        .options = show_table,
        .operand = "DIR",
        .operand_offset = offsetof(struct show_options, dir),
        .doc = "Lists the records of a data set in file order; checksums are verified.",
    };
    struct show_options o = {.choice = all_records};

    cmd_parse(&line, argc, argv, &o);
    return show(&o, e);
}

/* ---- extract */

/* clang-format off */
static const struct cmd_option extract_table[] = {
    {.name = "out", .letter = 'o', .value = "FOLDER", .kind = CMD_TEXT, .offset = offsetof(struct extract_options, out), .needed = true,
     .help = "output folder"},
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct extract_options, json),
     .help = "print one JSON object per written file"},
    CHOICE_OPTIONS(struct extract_options),
    {0},
};
/* clang-format on */

int cmd_extract(int argc, char **argv, struct error *e)
{
    static const struct cmd_line line = {
        .options = extract_table,
        .operand = "DIR",
        .operand_offset = offsetof(struct extract_options, dir),
        .doc = "Writes the images of a data set as JPEG files, just as they are stored.",
    };
    struct extract_options o = {.choice = all_records};

    cmd_parse(&line, argc, argv, &o);
    return extract(&o, e);
}
