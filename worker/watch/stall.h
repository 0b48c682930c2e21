/*
 * Detects that a run makes no progress, from before MPI's start to its end, and diagnoses the cause
 * as far as one machine can see.
 *
 * A thread of each rank watches; once MPI runs, the ranks of a machine share their state in memory.
 * Each rank logs its own part; one reports for the machine, repeatedly (common/run/stall_report.h),
 * and rank 0 writes a warning event. The run is not ended here: the daemon reads the log and
 * decides.
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
    STALL_FILES, /* reading or writing them */
    STALL_ALLREDUCE,
    STALL_WAIT /* for the other ranks */
};

struct stall;

/* Starts watching, as waiting for the other ranks, because MPI's start comes next. With seconds 0
 * *out is NULL, which all calls accept. give_up_seconds: see start.h. */
int stall_create(double seconds, double give_up_seconds, struct stall **out, struct error *e);

/* From now until stall_unshare the ranks of a machine see each other. Collective. */
int stall_share(struct stall *s, struct traincomm *comm, struct error *e);
void stall_unshare(struct stall *s); /* collective */
void stall_destroy(struct stall *s);

/* Sets where warnings go; NULL: nowhere. */
void stall_report_to(struct stall *s, struct report *report);

/* Sets what this rank does from now on. Cheap. */
void stall_doing(struct stall *s, enum stall_doing doing);

/* Sets the phase; for STALL_IN_STEP call it again at the end of each step. */
void stall_phase(struct stall *s, enum stall_phase phase);
void stall_step_ended(struct stall *s, int64_t step); /* step: number of completed steps */

/* Bytes sent (acknowledged) and received by this process's open TCP connections; decreases if one
 * was closed. The gradients of a step move over a slow network long before their sum is complete,
 * and MPI does not report progress. */
uint64_t stall_tcp_bytes(void);
