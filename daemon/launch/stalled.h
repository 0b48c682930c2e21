/*
 * Detects a run without progress, as stopped ranks and unreachable hosts cannot report
 * themselves. Sources: the last event, the reports of the ranks' watchers in the log
 * (common/run/stall_report.h), and whether mpirun or a rank of this machine is stopped.
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
    int64_t rank;   /* -1: not a single rank */
    char host[128]; /* as the job names it; "": not a single host */
};

struct stall_look {
    const char *attempt_dir;
    double stall_seconds;
    double launched_at; /* Unix time; 0: unknown, then a run without events is not judged */
    const struct launcher *launcher; /* of local processes; NULL: none */
    struct launch_process *process;
    double stopped_since; /* private: Unix time since when a local process is stopped; 0: none is */
};

/*
 * True: nothing has progressed for stall_seconds, and will not by itself: a rank or mpirun is
 * stopped or dead, a host or rank does not report while others wait, all wait for each other, or
 * mpirun does not exit after the end of the run. A rank that reads, writes or computes is merely
 * slow. now: Unix seconds. Does not block.
 */
bool stalled_look(struct stall_look *look, double now, struct stalled *stalled);

/* Seconds of silence after which it is true in any case. */
double stalled_longest_silence(double stall_seconds);

/* Stores the stall that an attempt is ended for, for the verdict and the next daemon. */
int stalled_keep(const char *attempt_dir, const struct stalled *stalled, struct error *e);
bool stalled_read(const char *attempt_dir, struct stalled *stalled);
