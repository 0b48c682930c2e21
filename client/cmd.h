/*
 * trainctl's commands: one table (cmd.c) that dispatch, option parsing, --help and the check of
 * man/trainctl.1 use. A command lives in cmd/cmd_NAME.c, its entry is cmd_NAME(argc, argv) with
 * argv[0] its name, and it returns the process's exit code (common/error.h's table).
 *
 *     int cmd_show(int argc, char **argv)
 *     {
 *         struct cmd_args args;
 *         int done = cmd_parse(&args, argc, argv);
 *
 *         if (done >= 0)
 *             return done; // --help was shown, or a usage error
 *         ... args.operands[0], cmd_value(&args, "names"), cmd_flag(&args, "csv"), client.json ...
 *     }
 */
#ifndef TRAIND_CLIENT_CMD_H
#define TRAIND_CLIENT_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/settings.h"
#include "common/error.h"

#define CMD_OPTIONS_MAX  12
#define CMD_OPERANDS_MAX 20
#define CMD_REPEATED_MAX 64 /* of KEY=VALUE options */

struct cmd_option {
    const char *name; /* "limit" for --limit */
    char letter;      /* 'f' for -f; 0: none */
    const char
        *value; /* "N": what it takes; NULL: it is a flag; "KEY=VALUE" may come several times */
    const char *help;
};

struct cmd {
    const char *name;
    const char *synopsis;              /* behind the name: "[--state S] [--limit N]" */
    const char *help;                  /* one line */
    int (*run)(int argc, char **argv); /* NULL: not built in this version, and refused so */
    int min_operands, max_operands;
    struct cmd_option options[CMD_OPTIONS_MAX]; /* own ones, ends with a zeroed row */
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

const struct cmd *cmd_at(size_t i);               /* NULL behind the last */
const char *cmd_title(const char *name);          /* above this command; NULL: none */
const struct cmd *cmd_find(const char *name);     /* NULL: none of that name */
const struct cmd_option *cmd_common_at(size_t i); /* the options all commands take */

/* A command's own options, then the common ones; NULL behind the last. cmd NULL: the common ones.
 */
const struct cmd_option *cmd_option_at(const struct cmd *cmd, size_t i);

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

/* Prints "trainctl: words" (or one line of JSON under --json) to stderr; returns the exit code of
 * the error's type. */
int cmd_fail(const struct error *e);

/* Prints a usage error of a command; returns 2. */
int cmd_usage(const struct cmd *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An operand that must be a job's id: 0, or a usage error that names the operand. */
int cmd_job_id(const char *text, long *id, struct error *e);

/* An option's value that must be a whole number. */
int cmd_number(const char *text, const char *option, long minimum, long maximum, long *number,
               struct error *e);

/* An option's value that must be a time, as 2h, 90min, 1.5d or 5400s; not given: *seconds stays. */
int cmd_duration(const struct cmd_args *args, const char *option, double *seconds, struct error *e);

/* A word that must be one of a table's, by name_at(0), name_at(1)... until NULL: 0, or a usage
 * error that names the nearest, or all of them. what: "state", "metric". */
int cmd_word(const char *word, const char *what, const char *name_at(size_t), struct error *e);
int cmd_words(const char *list, const char *what, const char *name_at(size_t), struct error *e);

const char *cmd_state_at(size_t i);  /* "queued"... */
const char *cmd_metric_at(size_t i); /* "loss"... */
const char *cmd_role_at(size_t i);   /* of tokens: "read"... */

int cmd_plan(int argc, char **argv);
int cmd_submit(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_presets(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_token(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_nodes(int argc, char **argv);
int cmd_scale(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_checkpoints(int argc, char **argv);
int cmd_clone(int argc, char **argv);

#endif
