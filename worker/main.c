/* train-worker: one rank of a training or evaluation run. See man train-worker. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/run/attempt.h"
#include "worker/evaluate.h"
#include "worker/start/command_line.h"
#include "worker/start/start.h"
#include "worker/train.h"
#include "worker/watch/energy.h"
#include "worker/watch/last_words.h"
#include "worker/watch/profile.h"
#include "worker/watch/stall.h"

static int main_run_to_end(const struct start_options *options, struct traincomm *comm)
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
        return run.cancelled ? 130 : 0; /* a signal behind the last step stopped nothing */
    if (e.code == ERR_NO_SPACE)
        return ATTEMPT_EXIT_NO_SPACE;
    return error_type(e.code)->exit_code == 2 ? 2 : 1;
}

int main(int argc, char **argv)
{
    struct start_options options;
    struct traincomm *comm;
    struct error e;
    int exit_status = command_line(argc, argv, &options);
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
    last_words_prepare(comm);
    if (stall_share(options.stall, comm, &e))
        log_warning("%s", e.text);
    options.energy = energy_create(comm);
    exit_status = main_run_to_end(&options, comm);
    energy_destroy(options.energy);
    stall_phase(options.stall, STALL_IN_END);
    stall_unshare(options.stall);
    traincomm_finalize(comm);
    stall_destroy(options.stall);
    return exit_status;
}
