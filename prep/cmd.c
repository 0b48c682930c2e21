#include "prep/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_KEY   1000 /* of options without a letter */
#define OPTIONS_MAX 24

struct cmd_parsing {
    const struct cmd_line *line;
    char *fields;
};

static int64_t cmd_number(struct argp_state *state, const struct cmd_option *o, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < o->least || value > o->most)
        argp_error(state, "--%s %s: expected a whole number from %lld to %lld", o->name, text,
                   (long long)o->least, (long long)o->most);
    return value;
}

static void cmd_store(struct argp_state *state, const struct cmd_option *o, const char *text,
                      void *field)
{
    switch (o->kind) {
    case CMD_FLAG:
        *(bool *)field = true;
        break;
    case CMD_TEXT:
        *(const char **)field = text;
        break;
    case CMD_INT:
        *(int *)field = (int)cmd_number(state, o, text);
        break;
    case CMD_INT64:
        *(int64_t *)field = cmd_number(state, o, text);
        break;
    case CMD_OWN:
        o->parse(state, text, field);
        break;
    }
}

static void cmd_store_operand(struct argp_state *state, const struct cmd_parsing *p,
                              const char *text)
{
    const char **field = (const char **)(void *)(p->fields + p->line->operand_offset);

    if (!p->line->operand || *field)
        argp_error(state, "unexpected argument %s", text);
    *field = text;
}

static void cmd_check(struct argp_state *state, const struct cmd_parsing *p)
{
    const struct cmd_line *line = p->line;

    if (line->operand && !*(const char **)(void *)(p->fields + line->operand_offset))
        argp_error(state, "%s is missing", line->operand);
    for (const struct cmd_option *o = line->options; o->name; o++)
        if (o->needed && !*(const char **)(void *)(p->fields + o->offset))
            argp_error(state, "--%s is missing", o->name);
    if (line->check)
        line->check(p->fields, state);
}

static int cmd_key(const struct cmd_line *line, size_t i)
{
    return line->options[i].letter ? line->options[i].letter : FIRST_KEY + (int)i;
}

static error_t cmd_parse_key(int key, char *arg, struct argp_state *state)
{
    const struct cmd_parsing *p = state->input;

    if (key == ARGP_KEY_ARG)
        cmd_store_operand(state, p, arg);
    else if (key == ARGP_KEY_END)
        cmd_check(state, p);
    for (size_t i = 0; p->line->options[i].name; i++)
        if (key == cmd_key(p->line, i)) {
            cmd_store(state, &p->line->options[i], arg, p->fields + p->line->options[i].offset);
            return 0;
        }
    return key == ARGP_KEY_ARG || key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

void cmd_parse(const struct cmd_line *line, int argc, char **argv, void *fields)
{
    struct argp_option table[OPTIONS_MAX + 1] = {0};
    struct cmd_parsing p = {line, fields};

    for (size_t i = 0; i < OPTIONS_MAX && line->options[i].name; i++)
        table[i] = (struct argp_option){.name = line->options[i].name,
                                        .key = cmd_key(line, i),
                                        .arg = line->options[i].value,
                                        .doc = line->options[i].help};
    struct argp argp = {
        .options = table,
        .parser = cmd_parse_key,
        .args_doc = line->operand ? line->operand : "",
        .doc = line->doc,
    };
    int reason = argp_parse(&argp, argc, argv, 0, NULL, &p);
    if (reason) {
        fprintf(stderr, "train-prep: cannot read the command line: %s\n", strerror(reason));
        exit(EXIT_FAILURE);
    }
}
