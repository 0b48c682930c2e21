/* train-worker: one rank of a training or evaluation run. See man train-worker. */
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "worker/evaluate.h"
#include "worker/run.h"
#include "worker/start/command_line.h"
#include "worker/start/start.h"
#include "worker/train.h"
#include "worker/watch/energy.h"
#include "worker/watch/profile.h"
#include "worker/watch/stall.h"

/* Replaces libc's sched_yield in train-worker, which Open MPI calls between two polls if ranks
 * share cores (mpi_yield_when_idle, set by itself on a node with more ranks than slots). The kernel
 * returns from it within microseconds, so a rank that waited for a straggler or for rank 0's
 * evaluation used up to half a core. Here a caller that has yielded for SPIN_SECONDS sleeps for an
 * eighth of its waiting time so far. */
static const double SPIN_SECONDS = 500e-6;           /* longer than most messages of a step take */
static const double SAME_WAIT = 300e-6;              /* longest gap between two calls of one wait */
static const double REST_SECONDS[] = {100e-6, 1e-3}; /* bounds */

static void main_sleep_in_wait(double waited)
{
    double seconds = fmin(fmax(waited / 8, REST_SECONDS[0]), REST_SECONDS[1]);
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

int sched_yield(void)
{
    static _Thread_local double began, last;
    double now = clock_monotonic();

    if (now - last > SAME_WAIT)
        began = now;
    last = now;
    if (now - began <= SPIN_SECONDS)
        return (int)syscall(SYS_sched_yield);
    main_sleep_in_wait(now - began);
    last = clock_monotonic();
    return 0;
}

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
        return run.cancelled ? 130 : 0; /* a signal after the last step stopped nothing */
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
    /* A run of the daemon is private to its user, also if ssh or Slurm started this rank. */
    if (getenv(ATTEMPT_MARK))
        umask(077);
    /* A rank that disappears closes its connections. The others must outlive that: mpirun names the
     * first rank whose end it learns of as the one that failed. */
    signal(SIGPIPE, SIG_IGN);
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
    run_report_crashes(comm);
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
