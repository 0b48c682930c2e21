/*
 * A run in which nothing goes on any more: the daemon's own watch, as a rank that is stopped and a
 * host that is cut off say nothing. Sources: the last event and its time; what the ranks' watchers
 * say in the log (common/run/stall_report.h), which comes through from every host that answers; and
 * whether mpirun or a rank on this machine is stopped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/run/stall_report.h"
#include "launch/launch.h"

struct stalled {
    char reason[512];
    enum stall_phase phase;
    int64_t rank;   /* -1: not one rank */
    char host[128]; /* as the job names it; "": not one host */
};

/* An attempt that is looked at again and again. */
struct stall_look {
    const char *attempt_dir;
    double stall_seconds;
    double launched_at; /* Unix time; 0: not known, and a run without events is left alone */
    const struct launcher *launcher; /* of processes here, which are looked at; NULL: of none */
    struct launch_process *process;
    double stopped_since; /* own: Unix time that a process here was first seen stopped; 0: not */
};

/*
 * True: for stall_seconds nothing got on and that will not change by itself: a rank or mpirun is
 * stopped or dead, a host or a rank says nothing while the others wait, all wait for each other, or
 * mpirun does not end behind the end of the run. A rank that is known to read, write or compute is
 * slow, and a long phase that gets on is long, which is not this. now: Unix seconds. Does not wait.
 */
bool stalled_look(struct stall_look *look, double now, struct stalled *stalled);

/* After so many seconds of silence at the latest it is True. */
double stalled_longest_silence(double stall_seconds);

/* The attempt is ended for this: kept in its folder, for the verdict and for the next daemon. */
int stalled_keep(const char *attempt_dir, const struct stalled *stalled, struct error *e);
bool stalled_read(const char *attempt_dir, struct stalled *stalled);
