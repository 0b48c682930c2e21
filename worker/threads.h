/* How many threads a rank computes with. */
#ifndef TRAIND_WORKER_THREADS_H
#define TRAIND_WORKER_THREADS_H

#include <stdbool.h>

#include "worker/comm/traincomm.h"

/* wanted (cluster.threads_per_worker), or for 0: the cores (smt: hardware threads) this rank is
 * bound to; unbound, this machine's divided by the ranks on it. At least 1. Sets OpenMP to it.
 * Collective. */
int threads_of_rank(struct traincomm *comm, int wanted, bool smt);

#endif
