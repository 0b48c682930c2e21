/*
 * The command lines of train-prep's commands. A command has one table of its options, a row each,
 * which glibc's argp shows as --help and cmd_parse stores into the command's struct. A command
 * parses, does the work, and returns 0 or a negative error code with *e filled; stage returns an
 * exit status above 0 for failures that it has told of itself.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

int cmd_convert(int argc, char **argv, struct error *e);
int cmd_show(int argc, char **argv, struct error *e);
int cmd_extract(int argc, char **argv, struct error *e);
int cmd_audit(int argc, char **argv, struct error *e);
int cmd_stage(int argc, char **argv, struct error *e);

/* What a field is. CMD_OWN: whatever the row's parse makes of it. */
enum cmd_kind { CMD_FLAG, CMD_TEXT, CMD_INT, CMD_INT64, CMD_OWN };

struct cmd_option {
    const char *name;  /* "shards" for --shards; the operand's as it is told: "DIR" */
    int letter;        /* 'o' for -o; 0: none */
    const char *value; /* "N": what it takes; NULL: it is a flag */
    const char *help;
    enum cmd_kind kind;
    size_t offset;       /* of the field */
    int64_t least, most; /* of numbers */
    bool needed;         /* a text that must be given */
    void (*parse)(struct argp_state *state, const char *text, void *field);
};

/* A command line. Wrong values end the program with status 2 and words. */
struct cmd_line {
    const struct cmd_option *options; /* ends with a zeroed row */
    const char *operand;              /* "DIR", which must be given, as a text; NULL: none */
    size_t operand_offset;
    const char *doc;
    void (*check)(void *fields, struct argp_state *state); /* what depends on two; NULL: nothing */
};

/* fields: the command's struct, with its defaults. */
void cmd_parse(const struct cmd_line *line, int argc, char **argv, void *fields);
