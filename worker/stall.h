/*
 * Notices that no step ends any more, and says why as far as one machine can see: a rank that is
 * stopped or gone, one that waits for data, one that still computes, or all of them blocked in the
 * all-reduce.
 *
 * A thread of each rank watches; what the ranks of a machine do lies in memory they share. Each
 * rank says its own part in its log; rank 0 writes a warning event about its machine. The run is
 * not ended: whoever reads the event decides that.
 */
#ifndef TRAIND_WORKER_STALL_H
#define TRAIND_WORKER_STALL_H

#include "worker/run.h"

enum stall_doing {
    STALL_OTHER, /* between steps: evaluation and checkpoints may take long, and are not watched */
    STALL_DATA,
    STALL_COMPUTE,
    STALL_ALLREDUCE,
    STALL_WAIT /* for the other ranks to begin or end the step */
};

struct stall;

/* Collective. seconds 0: nothing is watched, and *out is NULL, which all calls take. */
int stall_create(struct run *r, double seconds, struct stall **out, struct error *e);
void stall_destroy(struct stall *s); /* collective */

/* What this rank does from now on. Cheap. STALL_OTHER ends a step. */
void stall_doing(struct stall *s, enum stall_doing doing);

#endif
