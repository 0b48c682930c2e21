/*
 * A run in which nothing goes on any more: the daemon's own watch, as a rank that is stopped and a
 * host that is cut off say nothing. Sources: the time of the last event, and what the ranks'
 * watchers say in the log (common/stall_line.h), which comes through from every host that answers.
 */
#ifndef TRAIND_DAEMON_LAUNCH_STALLED_H
#define TRAIND_DAEMON_LAUNCH_STALLED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/launch/failure.h"

struct stalled {
    char reason[512];
    int64_t rank;   /* -1: not one rank */
    char host[128]; /* as the job names it; "": not one host */
};

/*
 * True: for stall_seconds no step ended and that will not change by itself: a rank is stopped or
 * dead, a host says nothing while the others wait, or all wait for each other. A rank that is known
 * to read or to compute is slow, which is not this. now: Unix seconds. Does not wait.
 */
bool stalled_look(const char *attempt_dir, double stall_seconds, double now,
                  struct stalled *stalled);

/* The attempt is ended for this: kept in its folder, for the verdict and for the next daemon. */
int stalled_keep(const char *attempt_dir, const struct stalled *stalled, struct error *e);
bool stalled_read(const char *attempt_dir, struct stalled *stalled);

#endif
