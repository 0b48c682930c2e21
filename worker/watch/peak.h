/* What these ranks' cores give at most: the yardstick of `trainctl bench`. */
#pragma once

#include <stdint.h>

#include "worker/comm/traincomm.h"

/* GFLOP/s of large square SGEMMs by OpenBLAS, on all threads of all ranks at the same time: the
 * best of several rounds, summed over the ranks. Collective; takes about a second; 0 without memory
 * for it. */
double peak_sgemm_gflops(struct traincomm *comm, int threads);

/* The most memory this process ever had resident (getrusage, ru_maxrss), the largest of all ranks.
 * Collective. */
int64_t peak_memory_bytes(struct traincomm *comm);
