/* How many threads a rank computes with, and what is left for another one. */
#pragma once

#include <stdbool.h>

#include "worker/run.h"

/* wanted (cluster.threads_per_worker), or for 0: the cores (smt: hardware threads) this rank is
 * bound to; unbound, this machine's divided by the ranks on it. At least 1. Sets OpenMP to it.
 * Collective. */
int threads_of_rank(struct traincomm *comm, int wanted, bool smt);

/* By comm.core: r->comm_cpu. An error is not agreed on. Collective. */
int threads_choose_cpu(struct run *r, struct error *e);
