/* Parses command lines by a table of options: the grammar of GNU getopt_long, values stored into a
 * struct, --help, and errors that suggest the most similar option. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

#define COMMAND_LINE_OPTIONS_MAX 40 /* including the common ones */

enum option_kind {
    OPTION_TAKEN, /* parsed by the row's `parse`, or else by the command line's `take` */
    OPTION_FLAG,  /* bool */
    OPTION_TEXT,  /* const char *, borrowed from argv */
    OPTION_INT,   /* int */
    OPTION_INT64
};

struct command_option {
    const char *name, *help;
    const char *value; /* placeholder of the value, for example "N"; NULL: the option is a flag */
    const char *completion; /* used by trainctl's shell completion */
    enum option_kind kind;
    size_t offset;    /* offset of the field to store the value in */
    int64_t min, max; /* bounds of numbers */
    char letter;      /* 'n' for -n; 0: none */
    bool required;    /* for texts */
    bool ends;        /* later arguments are not parsed */
    int (*parse)(const struct command_option *option, const char *text, void *field,
                 struct error *e);
};

struct command_line {
    const char *program; /* name in messages: "train-prep convert" */
    const char *usage, *doc, *version;
    /* Both are terminated by a zeroed row. An option hides a common one of the same name. */
    const struct command_option *options, *common; /* listed last; NULL: only --help */
    const char *operand; /* name of a required operand, for example "DIR"; NULL: none */
    size_t operand_offset;
    bool takes_operands;           /* the caller parses the operands */
    bool stops;                    /* stop parsing at the first operand */
    void (*print_more)(FILE *out); /* called at the end of --help */
    int (*check)(void *fields, struct error *e);
    int (*take)(const struct command_option *option, size_t index, const char *text, void *fields,
                struct error *e); /* called instead of storing a value */
};

const struct command_option *command_line_option(const struct command_line *line, size_t i);

/* Parses argv into `fields`. Returns the index of the first operand (argv is permuted), or
 * ERR_USAGE. Sets *ended to the option that ended parsing, or NULL. Not thread-safe. */
int command_line_parse(const struct command_line *line, int argc, char **argv, void *fields,
                       const struct command_option **ended, struct error *e);

/* Like command_line_parse, but also prints help, version and errors. Returns -1 if the program
 * should continue, or its exit status. */
int command_line_read(const struct command_line *line, int argc, char **argv, void *fields);

int command_line_fail(const struct command_line *line, const struct error *e);

void command_line_print_options(FILE *out, int columns, const struct command_line *line);
