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
#define CMD_REPEATED_MAX 64 /* maximum number of KEY=VALUE options */

#define OPTION(name_, letter_, value_, help_, completion_)                                         \
    {                                                                                              \
        .name = name_, .letter = letter_, .value = value_, .help = help_,                          \
        .completion = completion_                                                                  \
    }

struct cmd_args;

struct cmd {
    const char *name;
    const char *synopsis; /* after the name: "[--state S] [--limit N]" */
    const char *help;     /* one line */
    const char *example;  /* a complete, valid command line */
    int (*run)(const struct cmd_args *args);
    int (*one)(long id, struct error *e);  /* for cmd_each_job */
    const char *document;                  /* for cmd_show_document and cmd_show_of_job: its path */
    void (*print)(const json_t *document); /* for cmd_show_document and cmd_show_of_job */
    int operands[2];                       /* minimum and maximum number */
    /* What the operands are, for completion: "job", "file", "state", ... (complete.c). Alternatives
     * are separated by spaces; the part after a comma is for the next operand and those after it.
     * Words separated by "|" are for the first operand, like the alternatives beside them; a colon
     * introduces what follows that word: "list|show:sweep". "/..." stands for the allowed values of
     * a job's key; "none": no candidates. */
    const char *completion;
    struct command_option
        options[CMD_OPTIONS_MAX + 1]; /* its own options, terminated by a zeroed row */
};

struct cmd_args {
    const struct cmd *cmd;
    const char *operands[CMD_OPERANDS_MAX];
    int operand_count;
    const char *repeated[CMD_REPEATED_MAX]; /* values of "KEY=VALUE" options, in order */
    int repeated_count;
    const char
        *values[CMD_OPTIONS_MAX]; /* for cmd->options: the value, "" for a flag, NULL if absent */
};

const struct cmd *cmd_at(size_t i);           /* NULL past the last */
const char *cmd_title(const char *name);      /* title shown above this command; NULL: none */
const struct cmd *cmd_find(const char *name); /* NULL: unknown */
const struct command_option *cmd_common_at(size_t i); /* options common to all commands */

/* Returns a command's options, then the common ones; NULL past the last. cmd NULL: no command. */
const struct command_option *cmd_option_at(const struct cmd *cmd, size_t i);

/* Parses a command's own options and the common ones, which may be mixed with its operands. Returns
 * -1 to continue, otherwise the exit code: 0 after --help, 2 after a usage error (printed). */
int cmd_parse(struct cmd_args *args, int argc, char **argv);

/* Parses the options before the command. Returns the index of the command in argv, or -1 with the
 * exit code in *code. */
int cmd_parse_common(int argc, char **argv, int *code);

const char *cmd_value(const struct cmd_args *args, const char *option); /* NULL: not given */
bool cmd_flag(const struct cmd_args *args, const char *option);

void cmd_print_help(FILE *out, const struct cmd *cmd);
void cmd_print_overview(FILE *out);

/* Prints "trainctl: text" to stderr, or a JSON line with --json. Returns the exit code for the
 * error's type. */
int cmd_fail(const struct error *e);

/* Prints that JSON line with these "errors" (steals the reference; NULL: none). Returns the exit
 * code. */
int cmd_fail_json(const struct error *e, json_t *errors);

int cmd_usage(const struct cmd *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parses the number at the start of text, which must have no blanks, plus sign or leading zeros.
 * *end points after it. Returns false if there is no number. */
bool cmd_whole(const char *text, const char **end, long long *number);

bool cmd_agrees(const char *question);

/* Parses the id of a `what`, such as "token", listed by `trainctl LIST`. ERR_USAGE. */
int cmd_id(const char *text, const char *what, const char *list, long *id, struct error *e);
/* Also accepts a name (the newest job with that name) and "latest", by querying the daemon.
 * ERR_NOT_FOUND; ERR_CONFLICT: several jobs of that name have not ended. */
int cmd_job_id(const char *text, long *id, struct error *e);
int cmd_sweep_id(const char *text, long *id, struct error *e);
/* Resolves all operands; ids must hold CMD_OPERANDS_MAX. */
int cmd_job_ids(const struct cmd_args *args, long *ids, struct error *e);

/* A `run` for commands that apply `one` to each of their operands (jobs), continuing after
 * failures. Does nothing if an operand is invalid. */
int cmd_each_job(const struct cmd_args *args);

/* Appends "?OPTION=VALUE" for each of these options that was given ("q" for --find). The caller
 * frees the result. */
char *cmd_query(const struct cmd_args *args, const char *path, const char *const *options,
                size_t count);

/* Prints an answer (steals the reference) with print, or unchanged with --json. Returns 0. */
int cmd_show_answer(json_t *answer, void (*print)(const json_t *answer));
int cmd_tell(json_t *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cmd_show_path(const char *path, void (*print)(const json_t *answer));

/* A `run` for commands without operands that print `document`. */
int cmd_show_document(const struct cmd_args *args);
/* A `run` for commands that print /v1/jobs/ID followed by `document`. */
int cmd_show_of_job(const struct cmd_args *args);

int cmd_number(const char *text, const char *option, long minimum, long maximum, long *number,
               struct error *e);

/* Parses an option that is a time with a unit: 2h, 90min, 1.5d, 5400s. *seconds is unchanged if it
 * was not given. ERR_USAGE. */
int cmd_duration(const struct cmd_args *args, const char *option, double *seconds, struct error *e);

/* Checks that a word is one of name_at(0), name_at(1), ... up to NULL. ERR_USAGE suggests the most
 * similar one or lists all. what: "state", "metric". */
int cmd_word(const char *word, const char *what, const char *name_at(size_t), struct error *e);
int cmd_words(const char *list, const char *what, const char *name_at(size_t), struct error *e);

const char *cmd_state_at(size_t i);  /* "queued"... */
const char *cmd_metric_at(size_t i); /* "loss"... */
const char *cmd_role_at(size_t i);   /* roles of tokens: "read"... */

/* All commands, in the order of the help and man/trainctl.1. */
/* clang-format off */
#define CMD_ALL(X) \
    X(submit) X(run) X(list) X(show) X(watch) X(wait) X(logs) X(cancel) \
    X(resume) X(clone) X(hold) X(release) X(priority) X(tag) X(note) X(rename) X(rm) \
    X(metrics) X(confusion) X(compare) X(export) X(checkpoints) X(events) X(provenance) X(reproduce) \
    X(plan) X(predict) X(predict_images) X(export_onnx) X(presets) X(bench) X(scale) \
    X(sweep) \
    X(nodes) X(usage) X(failures) X(forecasts) \
    X(doctor) X(token) X(notify) X(audit) X(backup) \
    X(login) X(context) X(completion)
/* clang-format on */
#define CMD_ENTRY(name) extern const struct cmd cmd_##name##_entry;
CMD_ALL(CMD_ENTRY)
