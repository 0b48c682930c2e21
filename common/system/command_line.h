/* Command lines from a table of options: GNU getopt_long's grammar, values stored into a struct,
 * --help, and errors that name the nearest option. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

#define COMMAND_LINE_OPTIONS_MAX 40 /* own and common ones */

enum option_kind {
    OPTION_TAKEN, /* by the row's parse, or else by the command line's take */
    OPTION_FLAG,  /* bool */
    OPTION_TEXT,  /* const char *, borrowed from argv */
    OPTION_INT,   /* int */
    OPTION_INT64
};

struct command_option {
    const char *name, *help;
    const char *value;      /* "N": what it takes; NULL: it is a flag */
    const char *completion; /* for trainctl */
    enum option_kind kind;
    size_t offset;       /* of the field */
    int64_t least, most; /* of numbers */
    char letter;         /* 'n' for -n; 0: none */
    bool required;       /* of texts */
    bool ends;           /* the arguments behind it are not read */
    int (*parse)(const struct command_option *option, const char *text, void *field,
                 struct error *e);
};

struct command_line {
    const char *program; /* as messages name it: "train-prep convert" */
    const char *usage, *doc, *version;
    /* Each ends with a zeroed row. The last common one is hidden by an own one of its name. */
    const struct command_option *options, *common; /* common: at the end; NULL: --help */
    const char *operand;                           /* "DIR", which is required; NULL: none */
    size_t operand_offset;
    bool takes_operands;           /* the caller reads operands itself */
    bool stops;                    /* at the first operand */
    void (*print_more)(FILE *out); /* at the end of --help */
    int (*check)(void *fields, struct error *e);
    int (*take)(const struct command_option *option, size_t index, const char *text, void *fields,
                struct error *e); /* instead of storing values */
};

/* The options one after another; NULL behind the last. */
const struct command_option *command_line_option(const struct command_line *line, size_t i);

/* Reads argv into fields. Returns the index of the first operand (argv is permuted), or ERR_USAGE.
 * *ended: the option at which reading ended, or NULL. Not thread-safe. */
int command_line_parse(const struct command_line *line, int argc, char **argv, void *fields,
                       const struct command_option **ended, struct error *e);

/* The same, printing help, version and errors. Returns -1 to go on, or the exit status. */
int command_line_read(const struct command_line *line, int argc, char **argv, void *fields);

int command_line_fail(const struct command_line *line, const struct error *e);

void command_line_print_options(FILE *out, int columns, const struct command_line *line);
