#include <stdint.h>

#include "prep/cmd.h"
#include "prep/prep.h"

enum { KEY_JSON = 1000, KEY_ROLE };

static const struct argp_option show_table[] = {
    {"limit",                                   'n', "N", 0, "at most so many records (default: all)", 0},
    {"role",                                      KEY_ROLE, "ROLE", 0, "train (default) or validation, of a folder that holds both", 0},
    {"json", KEY_JSON, 0, 0, "one JSON object a line", 0},
    {0                                        },
};

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
    struct show_options *o = state->input;

    switch (key) {
    case 'n':
        o->limit = cmd_number(state, "--limit", arg, 1, INT64_MAX);
        return 0;
    case KEY_ROLE:
        o->role = cmd_role(state, arg);
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (o->dir)
            argp_error(state, "unexpected argument %s", arg);
        o->dir = arg;
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
        show_table, parse_show,
        "DIR",      "Lists the records of a data set in file order; checksums are verified.",
        0,          0,
        0};
    struct show_options o = {0};
    argp_parse(&argp, argc, argv, 0, 0, &o);
    return show(&o, e);
}

static const struct argp_option extract_table[] = {
    {"out",                     'o', "FOLDER", 0, "the folder to write to", 0},
    {"limit",                 'n', "N", 0, "at most so many images (default: all)", 0},
    {"role", KEY_ROLE, "ROLE", 0, "train (default) or validation, of a folder that holds both", 0},
    {0                        },
};

static error_t parse_extract(int key, char *arg, struct argp_state *state)
{
    struct extract_options *o = state->input;

    switch (key) {
    case 'o':
        o->out = arg;
        return 0;
    case 'n':
        o->limit = cmd_number(state, "--limit", arg, 1, INT64_MAX);
        return 0;
    case KEY_ROLE:
        o->role = cmd_role(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        if (o->dir)
            argp_error(state, "unexpected argument %s", arg);
        o->dir = arg;
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
        0,
        0,
        0};
    struct extract_options o = {0};
    argp_parse(&argp, argc, argv, 0, 0, &o);
    return extract(&o, e);
}
