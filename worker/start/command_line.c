#include "worker/start/command_line.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/system/command_line.h"
#include "common/system/open_beneath.h"
#include "config.h"
#include "worker/check/probe.h"
#include "worker/check/self_check.h"
#include "worker/job_settings.h"
#include "worker/kernels/gemm.h"
#include "worker/provenance/machine.h"

#define STALL_SECONDS 300

struct worker_line {
    struct start_options start;
    struct self_check_options check;
    bool checks, probe;
    const char *data_roots, *interface, *settings_of, *place, *sys, *provenance;
};

#define AT(field) offsetof(struct worker_line, field)

static int command_line_add_data(const struct command_option *option, const char *text, void *field,
                                 struct error *e)
{
    struct self_check_options *check = field;

    if (check->data_count == SELF_CHECK_DATA_MAX)
        return error_set(e, ERR_USAGE, "too many data sets: --%s %s", option->name, text);
    check->data[check->data_count++] = text;
    return 0;
}

static int command_line_parse_seconds(const struct command_option *option, const char *text,
                                      void *field, struct error *e)
{
    double *seconds = field;
    char *end;

    *seconds = strtod(text, &end);
    if (end == text || *end || !(*seconds >= 0 && *seconds <= (double)option->max))
        return error_set(e, ERR_USAGE, "--%s must be a number of seconds, or 0 for never, not %s",
                         option->name, text);
    return 0;
}

/* clang-format off */
static const struct command_option options[] = {
    {.name = "job", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(start.job_file),
     .help = "job document (JSON), as for POST /v1/jobs; see man 5 train-job"},
    {.name = "run-dir", .value = "DIR", .kind = OPTION_TEXT, .offset = AT(start.run_dir), .help = "run directory; created if missing"},
    {.name = "attempt", .value = "N", .kind = OPTION_INT, .min = 1, .max = INT_MAX, .offset = AT(start.attempt), .help = "number of this attempt (default: 1)"},
    {.name = "resume", .value = "FROM", .kind = OPTION_TEXT, .offset = AT(start.resume),
     .help = "resume from a checkpoint: its folder, or \"latest\" for the newest intact one in DIR"},
    {.name = "stall-seconds", .value = "S", .parse = command_line_parse_seconds, .max = 1000000, .offset = AT(start.stall_seconds),
     .help = "warn after S seconds without progress and name the rank that causes it (default: 300; 0: never)"},
    {.name = "give-up-seconds", .value = "S", .parse = command_line_parse_seconds, .max = 10000000, .offset = AT(start.give_up_seconds),
     .help = "exit after waiting S seconds for other machines (default: 0, never)"},
    {.name = "measure-peak", .kind = OPTION_FLAG, .offset = AT(start.measure_peak),
     .help = "also measure SGEMM on these cores, for run_stop (trainctl bench)"},
    {.name = "data-roots", .value = "DIR[:DIR]...", .kind = OPTION_TEXT, .offset = AT(data_roots),
     .help = "refuse data sets and weights outside these folders, also through links"},
    {.name = "self-check", .kind = OPTION_FLAG, .offset = AT(checks),
     .help = "check this machine, in less than two seconds: speed of its cores and memory, clock, "
             "free memory and scratch, versions, data sets; without mpirun"},
    {.name = "json", .kind = OPTION_FLAG, .offset = AT(check.json), .help = "with --self-check: print a JSON object"},
    {.name = "data", .value = "DIR", .parse = command_line_add_data, .offset = AT(check), .help = "with --self-check: check this data set; up to four times"},
    {.name = "scratch", .value = "DIR", .kind = OPTION_TEXT, .offset = AT(check.scratch), .help = "with --self-check: check this folder on a local disk"},
    {.name = "lines", .kind = OPTION_FLAG, .offset = AT(check.lines),
     .help = "with --self-check: check only the data sets and print a line for each"},
    {.name = "found", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(check.found),
     .help = "with --self-check: read the output of --lines instead of checking data sets"},
    {.name = "probe", .kind = OPTION_FLAG, .offset = AT(probe),
     .help = "print facts about this host for the launcher, as JSON, and end processes of earlier attempts"},
    {.name = "interface", .value = "NAME", .kind = OPTION_TEXT, .offset = AT(interface),
     .help = "with --probe: check that this network interface or subnet exists"},
    {.name = "job-settings", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(settings_of), .ends = true,
     .help = "print facts about a job for Slurm's prolog, one per line"},
    {.name = "placement", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(place),
     .help = "print the options of mpirun that place a job's workers on this machine"},
    {.name = "sys", .value = "DIR", .kind = OPTION_TEXT, .offset = AT(sys), .help = "with --placement: read this copy of a machine's /sys"},
    {.name = "provenance", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(provenance),
     .help = "print the programs, libraries and data a run of this job would use on this machine, as JSON"},
    {.name = "version", .ends = true, .help = "print version and the processor it is compiled for"},
    {.name = "help", .ends = true, .help = "print this text"},
    {0},
};
/* clang-format on */

static void command_line_print_statuses(FILE *out)
{
    fputs("\nExit status: 0 success, 1 failure, 2 invalid usage or job document, 8 disk full,\n130 "
          "stopped by a signal; with --self-check 1: this machine failed, 6: the data failed,\n7: "
          "the scratch folder failed.\n",
          out);
}

static int command_line_check_together(void *fields, struct error *e)
{
    const struct worker_line *line = fields;
    const struct self_check_options *check = &line->check;

    if (line->place || line->provenance || line->probe)
        return 0;
    if (!line->checks &&
        (check->json || check->data_count || check->scratch || check->lines || check->found))
        return error_set(e, ERR_USAGE,
                         "--json, --data, --scratch, --lines and --found require --self-check");
    if (check->lines && (check->json || check->scratch || check->found))
        return error_set(e, ERR_USAGE,
                         "--lines cannot be combined with --json, --scratch or --found");
    if (!line->checks && (!line->start.job_file || !line->start.run_dir))
        return error_set(e, ERR_USAGE, "--job FILE and --run-dir DIR are required");
    return 0;
}

int command_line(int argc, char **argv, struct start_options *start)
{
    struct worker_line line = {
        .start = {.attempt = 1, .stall_seconds = STALL_SECONDS}
    };
    char version[64];
    const struct command_line grammar = {
        .program = "train-worker",
        .usage = "Usage: mpirun -np N train-worker --job FILE --run-dir DIR [--attempt N] "
                 "[--resume FROM]\n"
                 "                                 [--stall-seconds S] [--give-up-seconds S] "
                 "[--measure-peak]\n"
                 "                                 [--data-roots DIR[:DIR]...]\n"
                 "       train-worker --self-check [--json] [--data DIR]... [--scratch DIR] "
                 "[--found FILE]\n"
                 "       train-worker --self-check --lines --data DIR...\n"
                 "       train-worker --probe [--run-dir DIR --attempt N] [--interface NAME]\n"
                 "       train-worker --provenance FILE [--data-roots DIR[:DIR]...]\n",
        .doc = "Trains or evaluates a network as described by a traind job document. Rank 0 writes "
               "DIR/attempt-N/events.jsonl, DIR/checkpoints/ and DIR/result.json. No daemon is "
               "needed.",
        .options = options,
        .version = version,
        .print_more = command_line_print_statuses,
        .check = command_line_check_together,
    };

    snprintf(version, sizeof version, "train-worker %s (kernels: %s)", PACKAGE_VERSION,
             isa_level());
    int status = command_line_read(&grammar, argc, argv, &line);
    *start = line.start;
    if (status >= 0)
        return status;
    if (line.data_roots)
        open_beneath_set_roots(line.data_roots);
    if (line.settings_of)
        return job_settings_print(line.settings_of);
    if (line.place)
        return job_settings_place(line.place, line.sys);
    if (line.provenance)
        return machine_print(line.provenance);
    if (line.probe)
        return probe_print(&(struct probe_options){start->run_dir, start->attempt, line.interface});
    return line.checks ? self_check(&line.check) : -1;
}
