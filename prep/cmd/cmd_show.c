#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "prep/cmd.h"
#include "prep/prep.h"

enum { KEY_JSON = 1000, KEY_ROLE, KEY_CLASS };

/* ---- which records */

static const struct record_choice all_records = {.to_end = true, .any_class = true};

static const struct argp_option choice_table[] = {
    {"role",                                                        KEY_ROLE, "ROLE", 0, "train (default) or validation, of a folder that holds both", 0},
    {"record",                                                       'r', "N[-[M]]", 0, "record N, or N to M, or from N on (default: all)", 0},
    {"class", KEY_CLASS, "C", 0, "records of this class only, counted from 0", 0},
    {"limit",                                                             'n', "N", 0, "at most so many (default: all)", 0},
    {0   },
};

/* N, N-M or N- */
static void parse_records(struct argp_state *state, const char *text, struct record_choice *c)
{
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

static error_t parse_choice(int key, char *arg, struct argp_state *state)
{
    struct record_choice *c = state->input;

    switch (key) {
    case 'n':
        c->limit = cmd_number(state, "--limit", arg, 1, INT64_MAX);
        return 0;
    case 'r':
        parse_records(state, arg, c);
        return 0;
    case KEY_CLASS:
        c->class = (int32_t)cmd_number(state, "--class", arg, 0, INT32_MAX);
        c->any_class = false;
        return 0;
    case KEY_ROLE:
        c->role = cmd_role(state, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp choice_argp = {choice_table, parse_choice, 0, 0, 0, 0, 0};
static const struct argp_child choice_children[] = {
    {&choice_argp, 0, 0, 0},
    {0          }
};

static void take_dir(struct argp_state *state, char *arg, const char **dir)
{
    if (*dir)
        argp_error(state, "unexpected argument %s", arg);
    *dir = arg;
}

/* ---- show */

static const struct argp_option show_table[] = {
    {"json", KEY_JSON, 0, 0, "one JSON object a line", 0},
    {0    },
};

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
    struct show_options *o = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->choice;
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        take_dir(state, arg, &o->dir);
        return 0;
    case ARGP_KEY_END:
        if (!o->dir)
            argp_error(state, "DIR is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_show(int argc, char **argv, struct error *e)
{
    static const struct argp argp = {
        show_table,
        parse_show,
        "DIR",
        "Lists the records of a data set in file order; checksums are verified.",
        choice_children,
        0,
        0};
    struct show_options o = {.choice = all_records};
    argp_parse(&argp, argc, argv, 0, 0, &o);
    return show(&o, e);
}

/* ---- extract */

static const struct argp_option extract_table[] = {
    {"out",                     'o', "FOLDER", 0, "the folder to write to", 0},
    {"json",                 KEY_JSON, 0, 0, "one JSON object a line: each file written", 0},
    {0},
};

static error_t parse_extract(int key, char *arg, struct argp_state *state)
{
    struct extract_options *o = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->choice;
        return 0;
    case 'o':
        o->out = arg;
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        take_dir(state, arg, &o->dir);
        return 0;
    case ARGP_KEY_END:
        if (!o->dir || !o->out)
            argp_error(state, !o->dir ? "DIR is missing" : "--out is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_extract(int argc, char **argv, struct error *e)
{
    static const struct argp argp = {
        extract_table,
        parse_extract,
        "DIR",
        "Writes the images of a data set as JPEG files, just as they are stored.",
        choice_children,
        0,
        0};
    struct extract_options o = {.choice = all_records};
    argp_parse(&argp, argc, argv, 0, 0, &o);
    return extract(&o, e);
}
