/* The commands of trainctl. Dispatch, option parsing, --help, completion and the check of
 * man/trainctl.1 use their entries, which CMD_ALL lists; an entry is defined next to its command in
 * cmd/. run gets the parsed command line and returns the exit code (common/error.h's table).
 *
 *     static int cmd_show(const struct cmd_args *args)
 *     {
 *         ... args->operands[0], cmd_value(args, "names"), cmd_flag(args, "csv"), client.json ...
 *     }
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/context.h"
#include "common/error.h"
#include "common/system/command_line.h"

#define CMD_OPTIONS_MAX  18
#define CMD_OPERANDS_MAX 20
#define CMD_REPEATED_MAX 64 /* of KEY=VALUE options */

#define OPTION(name_, letter_, value_, help_, completion_)                                         \
    {                                                                                              \
        .name = name_, .letter = letter_, .value = value_, .help = help_,                          \
        .completion = completion_                                                                  \
    }

struct cmd_args;

struct cmd {
    const char *name;
    const char *synopsis; /* behind the name: "[--state S] [--limit N]" */
    const char *help;     /* one line */
    const char *example;  /* a whole command line, which must parse */
    int (*run)(const struct cmd_args *args);
    int (*one)(long id, struct error *e);  /* of cmd_each_job */
    const char *document;                  /* of cmd_show_document, cmd_show_of_job: its path */
    void (*print)(const json_t *document); /* likewise */
    int operands[2];                       /* at least and at most so many */
    /* What the operands are, for completion: "job", "file", "state", ... (complete.c). Several are
     * separated by spaces; behind a comma is what the next operand is, and those after it. Words
     * with "|" between them are for the first operand, as is what stands beside them, and one tells
     * what follows it by a colon: "list|show:sweep". "/..." are the choices of a job's key; "none":
     * nothing can be offered. */
    const char *completion;
    struct command_option options[CMD_OPTIONS_MAX + 1]; /* own ones, ends with a zeroed row */
};

struct cmd_args {
    const struct cmd *cmd;
    const char *operands[CMD_OPERANDS_MAX];
    int operand_count;
    const char *repeated[CMD_REPEATED_MAX]; /* the values of "KEY=VALUE" options, in order */
    int repeated_count;
    const char
        *values[CMD_OPTIONS_MAX]; /* of cmd->options: the value, "" of a flag, NULL: absent */
};

const struct cmd *cmd_at(size_t i);                   /* NULL after the last */
const char *cmd_title(const char *name);              /* above this command; NULL: none */
const struct cmd *cmd_find(const char *name);         /* NULL: none of that name */
const struct command_option *cmd_common_at(size_t i); /* the options all commands take */

/* A command's options, then the common ones; NULL after the last. cmd NULL: the common ones. */
const struct command_option *cmd_option_at(const struct cmd *cmd, size_t i);

/* Parses a command's own options and the common ones, in any order with its operands. Returns -1
 * to go on, else the exit code: 0 after --help, 2 after a usage error (both already printed). */
int cmd_parse(struct cmd_args *args, int argc, char **argv);

/* The options in front of the command. Returns the index of the command in argv, or -1 with the
 * exit code in *code. */
int cmd_parse_common(int argc, char **argv, int *code);

const char *cmd_value(const struct cmd_args *args, const char *option); /* NULL: not given */
bool cmd_flag(const struct cmd_args *args, const char *option);

void cmd_print_help(FILE *out, const struct cmd *cmd);
void cmd_print_overview(FILE *out);

/* Prints "trainctl: text" to stderr, or under --json a line of JSON. Returns the exit code of the
 * error's type. */
int cmd_fail(const struct error *e);

/* Prints that JSON with these "errors" (steals the reference; NULL: none). Returns the exit code.
 */
int cmd_fail_json(const struct error *e, json_t *errors);

int cmd_usage(const struct cmd *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parses the number at the start of text, without blanks, plus sign, leading zeros or, for
 * decimals, any sign; *end: after it. False: there is none. */
bool cmd_whole(const char *text, const char **end, long long *number);
bool cmd_decimal(const char *text, const char **end, double *number);

bool cmd_agrees(const char *question);

/* Parses the id of a `what` ("token"), listed by `trainctl LIST`. ERR_USAGE. */
int cmd_id(const char *text, const char *what, const char *list, long *id, struct error *e);
/* Also accepts a name, which means the newest of that name, and "latest"; asks the daemon.
 * ERR_NOT_FOUND; ERR_CONFLICT if several of that name have not ended. */
int cmd_job_id(const char *text, long *id, struct error *e);
int cmd_sweep_id(const char *text, long *id, struct error *e);
/* All operands; ids holds CMD_OPERANDS_MAX. */
int cmd_job_ids(const struct cmd_args *args, long *ids, struct error *e);

/* The run of a command that does `one` to each of its operands, jobs, also after a failure. Does
 * nothing if an operand is invalid. */
int cmd_each_job(const struct cmd_args *args);

/* Appends "?OPTION=VALUE" for each of these options that is given ("q" for --find). The caller
 * frees the result. */
char *cmd_query(const struct cmd_args *args, const char *path, const char *const *options,
                size_t count);

/* Prints an answer (steals the reference) with print, or as it is under --json. Returns 0. */
int cmd_show_answer(json_t *answer, void (*print)(const json_t *answer));
int cmd_tell(json_t *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cmd_show_path(const char *path, void (*print)(const json_t *answer));

/* The run of a command without operands that prints `document`. */
int cmd_show_document(const struct cmd_args *args);
/* The run of a command that prints /v1/jobs/ID followed by `document`. */
int cmd_show_of_job(const struct cmd_args *args);

int cmd_number(const char *text, const char *option, long minimum, long maximum, long *number,
               struct error *e);

/* Parses an option's time with its unit: 2h, 90min, 1.5d, 5400s. *seconds is unchanged if it is not
 * given. ERR_USAGE. */
int cmd_duration(const struct cmd_args *args, const char *option, double *seconds, struct error *e);

/* Checks that a word is one of name_at(0), name_at(1), ... up to NULL. ERR_USAGE with the nearest,
 * or with all. what: "state", "metric". */
int cmd_word(const char *word, const char *what, const char *name_at(size_t), struct error *e);
int cmd_words(const char *list, const char *what, const char *name_at(size_t), struct error *e);

const char *cmd_state_at(size_t i);  /* "queued"... */
const char *cmd_metric_at(size_t i); /* "loss"... */
const char *cmd_role_at(size_t i);   /* of tokens: "read"... */

/* All commands, in the order of the help and of man/trainctl.1. */
/* clang-format off */
#define CMD_ALL(X) \
    X(submit) X(run) X(list) X(show) X(watch) X(wait) X(logs) X(cancel) \
    X(resume) X(clone) X(hold) X(release) X(priority) X(tag) X(note) X(rename) X(rm) \
    X(metrics) X(compare) X(export) X(checkpoints) X(events) X(provenance) X(reproduce) \
    X(plan) X(predict) X(presets) X(bench) X(scale) \
    X(sweep) \
    X(nodes) X(usage) X(failures) X(forecasts) \
    X(doctor) X(token) X(notify) X(audit) X(backup) \
    X(login) X(context) X(completion)
/* clang-format on */
#define CMD_ENTRY(name) extern const struct cmd cmd_##name##_entry;
CMD_ALL(CMD_ENTRY)
