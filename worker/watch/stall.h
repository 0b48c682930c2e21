/*
 * Detects that a run makes no progress, from before MPI starts to after it ends, and diagnoses the
 * cause as far as it can be seen from one machine.
 *
 * Each rank has a watch thread; once MPI runs, the ranks of a machine share their state in memory.
 * Each rank logs its own state; one rank reports for the machine, repeatedly
 * (common/run/stall_report.h), and rank 0 writes a warning event. This code does not end a stalled
 * run: the daemon reads the log and decides, except for give_up_seconds.
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
    STALL_FILES, /* reading or writing files */
    STALL_ALLREDUCE,
    STALL_WAIT /* waiting for the other ranks */
};

struct stall;

/* Starts the watch, in the state of waiting for other ranks, because MPI starts next. If seconds is
 * 0, *out is NULL, which all functions accept. give_up_seconds: see start.h. */
int stall_create(double seconds, double give_up_seconds, struct stall **out, struct error *e);

/* From here until stall_unshare the ranks of a machine see each other's state. Collective. */
int stall_share(struct stall *s, struct traincomm *comm, struct error *e);
void stall_unshare(struct stall *s); /* collective */
void stall_destroy(struct stall *s);

/* Sets the receiver of warning events; NULL: none. */
void stall_report_to(struct stall *s, struct report *report);

/* Sets the activity of this rank from now on. Cheap. */
void stall_doing(struct stall *s, enum stall_doing doing);

/* Sets the phase. During training, stall_step_ended starts the next step. */
void stall_phase(struct stall *s, enum stall_phase phase);
void stall_step_ended(struct stall *s, int64_t step); /* step: number of completed steps */

/* Returns the bytes sent (acknowledged) and received by this process's open TCP connections; the
 * sum decreases if one is closed. On a slow network it shows that a step's gradients are being
 * transferred long before their sum is complete, which MPI cannot report. */
uint64_t stall_tcp_bytes(void);
