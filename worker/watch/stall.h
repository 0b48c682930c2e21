/*
 * Notices that a run does not get on, in every phase from before MPI's start to its end, and says
 * why as far as one machine can see: a rank that is stopped or gone, one that waits for data, reads
 * or writes files or still computes, or all of them waiting for ranks of other machines.
 *
 * A thread of each rank watches; what the ranks of a machine do lies in memory they share, as soon
 * as MPI is there. Each rank says its own part in its log; one speaks for its machine, again and
 * again while it lasts (common/run/stall_report.h); rank 0 writes a warning event about its
 * machine. A long phase in which work is done (stall_progress_add) is said to get on, and is no
 * stall. The run is not ended: the daemon, which reads the log, decides that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/run/stall_report.h"
#include "worker/comm/traincomm.h"
#include "worker/report.h"

enum stall_doing {
    STALL_DATA,
    STALL_COMPUTE,
    STALL_FILES, /* reads or writes them */
    STALL_ALLREDUCE,
    STALL_WAIT /* for the other ranks */
};

struct stall;

/* Begins to watch, in the phase of the start and waiting for the other ranks, as the start of MPI
 * is what comes next. seconds 0: nothing is watched, and *out is NULL, which all calls take.
 * give_up: see start.h. */
int stall_create(double seconds, double give_up_seconds, struct stall **out, struct error *e);

/* Collective: from now on the ranks of a machine see each other, until stall_unshare. */
int stall_share(struct stall *s, struct traincomm *comm, struct error *e);
void stall_unshare(struct stall *s); /* collective */
void stall_destroy(struct stall *s);

/* Where warnings go; NULL: nowhere any more. */
void stall_report_to(struct stall *s, struct report *report);

/* What this rank does from now on. Cheap. */
void stall_doing(struct stall *s, enum stall_doing doing);

/* What the run is in from now on; for STALL_IN_STEP also called at the end of each step. */
void stall_phase(struct stall *s, enum stall_phase phase);
void stall_step_ended(struct stall *s, int64_t step); /* so many are done */
