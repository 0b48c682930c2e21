/* Detects a run without progress, because stopped ranks and unreachable hosts cannot report
 * themselves. Sources: the last event, the reports of the ranks' watchers in the log
 * (common/run/stall_report.h), and whether mpirun or a rank on this machine is stopped. */
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
    char host[128]; /* as named by the job; "": not a single host */
};

struct stall_look {
    const char *attempt_dir;
    double stall_seconds;
    double launched_at; /* Unix time; 0: unknown, and a run without events is not checked */
    const struct launcher *launcher; /* of local processes; NULL: none */
    struct launch_process *process;
    double stopped_since; /* private: Unix time since which a local process is stopped; 0: none */
};

/* Returns true if nothing has progressed for stall_seconds and the run cannot recover: a rank or
 * mpirun is stopped or dead, a host or rank does not report while others wait, all wait for each
 * other, or mpirun does not exit after the end of the run. A rank that reads, writes or computes is
 * only slow. now: Unix time. Does not block. */
bool stalled_look(struct stall_look *look, double now, struct stalled *stalled);

/* Returns the seconds of silence after which a run counts as stalled in any case. */
double stalled_longest_silence(double stall_seconds);

/* Stores the stall for which an attempt is ended, for the verdict and the next daemon. */
int stalled_keep(const char *attempt_dir, const struct stalled *stalled, struct error *e);
bool stalled_read(const char *attempt_dir, struct stalled *stalled);
