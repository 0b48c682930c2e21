/* train-worker: one rank of a training or evaluation run. See man train-worker. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/open_beneath.h"
#include "worker/check/probe.h"
#include "worker/check/self_check.h"
#include "worker/evaluate.h"
#include "worker/job_settings.h"
#include "worker/kernels/kind.h"
#include "worker/start/start.h"
#include "worker/train.h"
#include "worker/watch/profile.h"
#include "worker/watch/stall.h"

#define STALL_SECONDS 300

static const char usage[] =
    "Usage: mpirun -np N train-worker --job FILE --run-dir DIR [--attempt N] [--resume FROM]\n"
    "                                 [--stall-seconds S] [--give-up-seconds S] [--measure-peak]\n"
    "                                 [--data-roots DIR[:DIR]...]\n"
    "       train-worker --self-check [--json] [--data DIR]... [--scratch DIR] [--found FILE]\n"
    "       train-worker --self-check --lines --data DIR...\n"
    "       train-worker --probe [--run-dir DIR --attempt N] [--interface NAME]\n"
    "\n"
    "Trains, or evaluates, what a traind job document describes. Rank 0 writes "
    "DIR/attempt-N/events.jsonl,\n"
    "DIR/checkpoints/ and DIR/result.json; it needs no daemon.\n"
    "\n"
    "  --job FILE       job document (JSON), as for POST /v1/jobs; see man 5 train-job\n"
    "  --run-dir DIR    run directory; made if it is not there\n"
    "  --attempt N      number of this attempt (1)\n"
    "  --resume FROM    go on from a checkpoint: its folder, or \"latest\" for the newest of DIR "
    "that is whole\n"
    "  --stall-seconds S  warn when nothing got on for so long, and say which rank is the cause "
    "(300; 0: never)\n"
    "  --give-up-seconds S  end the ranks of a machine that wait so long for those of others (0: "
    "never)\n"
    "  --measure-peak   also measure SGEMM on these cores, for run_stop (trainctl bench)\n"
    "  --data-roots DIR[:DIR]...  refuse data sets and weights that do not lie in these folders, "
    "wherever links lead\n"
    "  --self-check     say how fit this machine is, in less than two seconds: speed of its cores "
    "and memory, clock,\n"
    "                   free memory and scratch, versions, data sets; without mpirun\n"
    "  --json           of the self-check: one JSON object\n"
    "  --data DIR       a data set to look at; up to four\n"
    "  --scratch DIR    a folder on this machine's own disk to look at\n"
    "  --lines          of the self-check: look at the data sets alone, and print a line each\n"
    "  --found FILE     take what --lines printed for the --data, rather than look at them\n"
    "  --probe          print what the launcher asks of a host, as JSON, and end what earlier "
    "attempts left here\n"
    "  --interface NAME  for --probe: is this network interface or subnet here?\n"
    "  --job-settings FILE  print what Slurm's prolog needs to know of a job, a line each\n"
    "  --placement FILE  print the options of mpirun that place a job's workers on this machine\n"
    "  --sys DIR        of --placement: take this copy of a machine's /sys\n"
    "  --version        version and the processor it is compiled for\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage or job document, 130 stopped by a signal; of the "
    "self-check\n1: this machine is not fit, 6: the data are not, 7: its scratch is not.\n";

static int usage_error(const char *message, const char *what)
{
    fprintf(stderr, "train-worker: %s%s; see train-worker --help\n", message, what);
    return 2;
}

static int add_data(struct self_check_options *check, const char *path)
{
    if (check->data_count == SELF_CHECK_DATA_MAX)
        return usage_error("too many data sets: ", path);
    check->data[check->data_count++] = path;
    return -1;
}

static int check_together(const struct start_options *o, const struct self_check_options *check,
                          bool checks)
{
    if (!checks &&
        (check->json || check->data_count || check->scratch || check->lines || check->found))
        return usage_error("--json, --data, --scratch, --lines and --found belong to --self-check",
                           "");
    if (check->lines && (check->json || check->scratch || check->found))
        return usage_error("--lines goes with --data only", "");
    if (!checks && (!o->job_file || !o->run_dir))
        return usage_error("--job FILE and --run-dir DIR are needed", "");
    return checks ? self_check(check) : -1;
}

/* Returns -1 to go on, or an exit status. */
static int worker_parse_options(int argc, char **argv, struct start_options *o)
{
    const char *interface = NULL, *place = NULL, *sys = NULL;
    bool probe = false;
    static const struct option options[] = {
        {"job",             required_argument, NULL, 'j'},
        {"run-dir",         required_argument, NULL, 'r'},
        {"attempt",         required_argument, NULL, 'a'},
        {"resume",          required_argument, NULL, 'c'},
        {"measure-peak",    no_argument,       NULL, 'p'},
        {"stall-seconds",   required_argument, NULL, 's'},
        {"give-up-seconds", required_argument, NULL, 'g'},
        {"data-roots",      required_argument, NULL, 'R'},
        {"self-check",      no_argument,       NULL, 'k'},
        {"json",            no_argument,       NULL, 'o'},
        {"data",            required_argument, NULL, 'd'},
        {"lines",           no_argument,       NULL, 'l'},
        {"found",           required_argument, NULL, 'f'},
        {"job-settings",    required_argument, NULL, 'S'},
        {"placement",       required_argument, NULL, 'L'},
        {"sys",             required_argument, NULL, 'y'},
        {"scratch",         required_argument, NULL, 't'},
        {"probe",           no_argument,       NULL, 'P'},
        {"interface",       required_argument, NULL, 'i'},
        {"version",         no_argument,       NULL, 'v'},
        {"help",            no_argument,       NULL, 'h'},
        {NULL,              0,                 NULL, 0  },
    };
    struct self_check_options check = {0};
    bool checks = false;
    char *end;

    *o = (struct start_options){.attempt = 1, .stall_seconds = STALL_SECONDS};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'j':
            o->job_file = optarg;
            break;
        case 'r':
            o->run_dir = optarg;
            break;
        case 'a':
            o->attempt = (int)strtol(optarg, &end, 10);
            if (*end || o->attempt < 1)
                return usage_error("--attempt takes a number from 1, not ", optarg);
            break;
        case 'c':
            o->resume = optarg;
            break;
        case 's':
            o->stall_seconds = strtod(optarg, &end);
            if (end == optarg || *end || !(o->stall_seconds >= 0 && o->stall_seconds <= 1e6))
                return usage_error("--stall-seconds takes seconds, 0 for never, not ", optarg);
            break;
        case 'g':
            o->give_up_seconds = strtod(optarg, &end);
            if (end == optarg || *end || !(o->give_up_seconds >= 0 && o->give_up_seconds <= 1e7))
                return usage_error("--give-up-seconds takes seconds, 0 for never, not ", optarg);
            break;
        case 'p':
            o->measure_peak = true;
            break;
        case 'R':
            open_beneath_set_roots(optarg);
            break;
        case 'k':
            checks = true;
            break;
        case 'o':
            check.json = true;
            break;
        case 'd':
            if (add_data(&check, optarg) >= 0)
                return 2;
            break;
        case 'l':
            check.lines = true;
            break;
        case 'f':
            check.found = optarg;
            break;
        case 'S':
            return job_settings_print(optarg);
        case 'L':
            place = optarg;
            break;
        case 'y':
            sys = optarg;
            break;
        case 't':
            check.scratch = optarg;
            break;
        case 'P':
            probe = true;
            break;
        case 'i':
            interface = optarg;
            break;
        case 'v':
            printf("train-worker %s (kernels: %s)\n", PACKAGE_VERSION, kernels_kind());
            return 0;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            return 2;
        }
    }
    if (optind < argc)
        return usage_error("unexpected argument ", argv[optind]);
    if (place)
        return job_settings_place(place, sys);
    if (probe)
        return probe_print(&(struct probe_options){o->run_dir, o->attempt, interface});
    return check_together(o, &check, checks);
}

static int run_to_end(const struct start_options *options, struct traincomm *comm)
{
    struct run run;
    struct error e = {0};
    int status = start_run(options, comm, &run, &e);

    if (!status)
        status = run.spec->mode == JOB_MODE_EVAL ? evaluate_only(&run, &e) : train(&run, &e);
    if (status)
        run_report_failure(&run, &e);
    run_destroy(&run);
    if (!status)
        return run_stop_requested() ? 130 : 0;
    return error_type(e.code)->exit_code == 2 ? 2 : 1;
}

int main(int argc, char **argv)
{
    struct start_options options;
    struct traincomm *comm;
    struct error e;
    int exit_status = worker_parse_options(argc, argv, &options);
    char name[32];

    if (exit_status >= 0)
        return exit_status;
    /* A run of the daemon's is its user's alone, also where ssh or Slurm started this rank. */
    if (getenv(ATTEMPT_MARK))
        umask(077);
    if (stall_create(options.stall_seconds, options.give_up_seconds, &options.stall, &e))
        log_warning("stalls are not watched for: %s", e.text);
    int status = traincomm_init(&comm);
    if (status) {
        log_error("cannot begin: %s", traincomm_strerror(status));
        return 1;
    }
    snprintf(name, sizeof name, "rank %d", traincomm_rank(comm));
    log_set_name(name);
    traincomm_on_span(comm, profile_comm_span, NULL);
    run_catch_signals();
    if (stall_share(options.stall, comm, &e))
        log_warning("%s", e.text);
    exit_status = run_to_end(&options, comm);
    stall_phase(options.stall, STALL_IN_END);
    stall_unshare(options.stall);
    traincomm_finalize(comm);
    stall_destroy(options.stall);
    return exit_status;
}
