#include "worker/start/command_line.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/system/open_beneath.h"
#include "config.h"
#include "worker/check/probe.h"
#include "worker/check/self_check.h"
#include "worker/job_settings.h"
#include "worker/kernels/kind.h"
#include "worker/provenance/machine.h"

#define STALL_SECONDS 300
#define OPTIONS_MAX   32
#define LABEL_COLUMNS 16
#define LABEL_BYTES   64

struct command_line {
    struct start_options start;
    struct self_check_options check;
    bool checks, probe, help, version;
    const char *data_roots, *interface, *settings_of, *place, *sys, *provenance;
};

enum kind { KIND_FLAG, KIND_TEXT, KIND_TEXTS, KIND_COUNT, KIND_SECONDS };

#define AT(field) offsetof(struct command_line, field)

/* Indents what goes on in another line of the help. */
#define MORE "\n                   "

/* clang-format off */
static const struct row {
    const char *name, *value; /* value NULL: a flag */
    enum kind kind;
    size_t offset;
    double most; /* of seconds */
    const char *help;
} rows[] = {
    {"job", "FILE", KIND_TEXT, AT(start.job_file), 0,
     "job document (JSON), as for POST /v1/jobs; see man 5 train-job"},
    {"run-dir", "DIR", KIND_TEXT, AT(start.run_dir), 0, "run directory; made if it is not there"},
    {"attempt", "N", KIND_COUNT, AT(start.attempt), 0, "number of this attempt (1)"},
    {"resume", "FROM", KIND_TEXT, AT(start.resume), 0,
     "go on from a checkpoint: its folder, or \"latest\" for the newest of DIR that is whole"},
    {"stall-seconds", "S", KIND_SECONDS, AT(start.stall_seconds), 1e6,
     "warn after S seconds without progress, and name the rank that causes it (default: 300; 0: never)"},
    {"give-up-seconds", "S", KIND_SECONDS, AT(start.give_up_seconds), 1e7,
     "end the ranks of a machine that wait so long for those of others (0: never)"},
    {"measure-peak", NULL, KIND_FLAG, AT(start.measure_peak), 0,
     "also measure SGEMM on these cores, for run_stop (trainctl bench)"},
    {"data-roots", "DIR[:DIR]...", KIND_TEXT, AT(data_roots), 0,
     "refuse data sets and weights that do not lie in these folders, wherever links lead"},
    {"self-check", NULL, KIND_FLAG, AT(checks), 0,
     "check this machine, in less than two seconds: speed of its cores and memory, clock,"
     MORE "free memory and scratch, versions, data sets; without mpirun"},
    {"json", NULL, KIND_FLAG, AT(check.json), 0, "of the self-check: one JSON object"},
    {"data", "DIR", KIND_TEXTS, AT(check), 0, "a data set to look at; up to four"},
    {"scratch", "DIR", KIND_TEXT, AT(check.scratch), 0, "a folder on this machine's own disk to look at"},
    {"lines", NULL, KIND_FLAG, AT(check.lines), 0,
     "of the self-check: look at the data sets alone, and print a line each"},
    {"found", "FILE", KIND_TEXT, AT(check.found), 0,
     "use what --lines printed for --data instead of checking it"},
    {"probe", NULL, KIND_FLAG, AT(probe), 0,
     "print what the launcher needs to know about a host, as JSON, and end processes of earlier attempts"},
    {"interface", "NAME", KIND_TEXT, AT(interface), 0,
     "for --probe: is this network interface or subnet here?"},
    {"job-settings", "FILE", KIND_TEXT, AT(settings_of), 0,
     "print what Slurm's prolog needs to know about a job, one item per line"},
    {"placement", "FILE", KIND_TEXT, AT(place), 0,
     "print the options of mpirun that place a job's workers on this machine"},
    {"sys", "DIR", KIND_TEXT, AT(sys), 0, "of --placement: take this copy of a machine's /sys"},
    {"provenance", "FILE", KIND_TEXT, AT(provenance), 0,
     "print what a run of this job document would compute with on this machine, and its data, as JSON"},
    {"version", NULL, KIND_FLAG, AT(version), 0, "version and the processor it is compiled for"},
    {"help", NULL, KIND_FLAG, AT(help), 0, "this text"},
};
/* clang-format on */

#define ROWS (sizeof rows / sizeof rows[0])
_Static_assert(ROWS < OPTIONS_MAX, "getopt_long's table ends with an empty row");

static const char usage[] =
    "Usage: mpirun -np N train-worker --job FILE --run-dir DIR [--attempt N] [--resume FROM]\n"
    "                                 [--stall-seconds S] [--give-up-seconds S] [--measure-peak]\n"
    "                                 [--data-roots DIR[:DIR]...]\n"
    "       train-worker --self-check [--json] [--data DIR]... [--scratch DIR] [--found FILE]\n"
    "       train-worker --self-check --lines --data DIR...\n"
    "       train-worker --probe [--run-dir DIR --attempt N] [--interface NAME]\n"
    "       train-worker --provenance FILE [--data-roots DIR[:DIR]...]\n"
    "\n"
    "Trains, or evaluates, what a traind job document describes. Rank 0 writes "
    "DIR/attempt-N/events.jsonl,\n"
    "DIR/checkpoints/ and DIR/result.json; it needs no daemon.\n"
    "\n";

static const char exit_statuses[] =
    "\nExit status: 0 done, 1 failed, 2 wrong usage or job document, 8 disk full,\n130 stopped by "
    "a signal; of the self-check 1: this machine failed, 6: the data failed,\n7: the scratch "
    "folder failed.\n";

static int command_line_print_usage(void)
{
    char label[LABEL_BYTES];

    fputs(usage, stdout);
    for (size_t i = 0; i < ROWS; i++) {
        int columns = snprintf(label, sizeof label, "--%s%s%s", rows[i].name,
                               rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
        printf("  %-*s%s%s\n", LABEL_COLUMNS, label, columns < LABEL_COLUMNS ? " " : "  ",
               rows[i].help);
    }
    fputs(exit_statuses, stdout);
    return 0;
}

static int command_line_usage_error(const char *message, const char *what)
{
    fprintf(stderr, "train-worker: %s%s; see train-worker --help\n", message, what);
    return 2;
}

/* ---- values: -1, or an exit status */

static int command_line_add_data(struct self_check_options *check, const char *path)
{
    if (check->data_count == SELF_CHECK_DATA_MAX)
        return command_line_usage_error("too many data sets: ", path);
    check->data[check->data_count++] = path;
    return -1;
}

static int command_line_store_count(const struct row *row, const char *text, int *field)
{
    char *end, words[LABEL_BYTES];

    *field = (int)strtol(text, &end, 10);
    snprintf(words, sizeof words, "--%s takes a number from 1, not ", row->name);
    return *end || *field < 1 ? command_line_usage_error(words, text) : -1;
}

static int command_line_store_seconds(const struct row *row, const char *text, double *field)
{
    char *end, words[LABEL_BYTES];

    *field = strtod(text, &end);
    snprintf(words, sizeof words, "--%s takes seconds, 0 for never, not ", row->name);
    return end == text || *end || !(*field >= 0 && *field <= row->most)
               ? command_line_usage_error(words, text)
               : -1;
}

static int command_line_store_value(const struct row *row, const char *text,
                                    struct command_line *line)
{
    void *field = (char *)line + row->offset;

    switch (row->kind) {
    case KIND_FLAG:
        *(bool *)field = true;
        return -1;
    case KIND_TEXT:
        *(const char **)field = text;
        return -1;
    case KIND_TEXTS:
        return command_line_add_data(field, text);
    case KIND_COUNT:
        return command_line_store_count(row, text, field);
    case KIND_SECONDS:
        return command_line_store_seconds(row, text, field);
    }
    return 2;
}

/* These need nothing of what is behind them. */
static bool command_line_is_all(const struct command_line *line)
{
    return line->help || line->version || line->settings_of;
}

static int command_line_read_words(int argc, char **argv, struct command_line *line)
{
    struct option options[OPTIONS_MAX] = {0};
    int status = -1, found;

    for (size_t i = 0; i < ROWS; i++)
        options[i] = (struct option){
            .name = rows[i].name,
            .has_arg = rows[i].value ? required_argument : no_argument,
            .val = (int)i + 1,
        };
    while (status < 0 && !command_line_is_all(line) &&
           (found = getopt_long(argc, argv, "", options, NULL)) != -1)
        status = found == '?' ? 2 : command_line_store_value(&rows[found - 1], optarg, line);
    if (status < 0 && !command_line_is_all(line) && optind < argc)
        return command_line_usage_error("unexpected argument ", argv[optind]);
    return status;
}

/* ---- what is asked for */

static int command_line_check_together(const struct command_line *line)
{
    const struct self_check_options *check = &line->check;

    if (!line->checks &&
        (check->json || check->data_count || check->scratch || check->lines || check->found))
        return command_line_usage_error(
            "--json, --data, --scratch, --lines and --found belong to --self-check", "");
    if (check->lines && (check->json || check->scratch || check->found))
        return command_line_usage_error("--lines goes with --data only", "");
    if (!line->checks && (!line->start.job_file || !line->start.run_dir))
        return command_line_usage_error("--job FILE and --run-dir DIR are needed", "");
    return line->checks ? self_check(check) : -1;
}

static int command_line_print_version(void)
{
    printf("train-worker %s (kernels: %s)\n", PACKAGE_VERSION, kernels_kind());
    return 0;
}

int command_line(int argc, char **argv, struct start_options *options)
{
    struct command_line line = {
        .start = {.attempt = 1, .stall_seconds = STALL_SECONDS}
    };
    int status = command_line_read_words(argc, argv, &line);

    *options = line.start;
    if (status >= 0)
        return status;
    if (line.data_roots)
        open_beneath_set_roots(line.data_roots);
    if (line.help)
        return command_line_print_usage();
    if (line.version)
        return command_line_print_version();
    if (line.settings_of)
        return job_settings_print(line.settings_of);
    if (line.place)
        return job_settings_place(line.place, line.sys);
    if (line.provenance)
        return machine_print(line.provenance);
    if (line.probe)
        return probe_print(
            &(struct probe_options){options->run_dir, options->attempt, line.interface});
    return command_line_check_together(&line);
}
