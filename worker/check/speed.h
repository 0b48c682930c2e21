/* Speed of this machine's processor and memory. */
#pragma once

#include <jansson.h>

#include "worker/comm/traincomm.h"

/* Peak SGEMM rate of OpenBLAS on all threads of all ranks together, by processor time: GFLOP/s of
 * the best of several rounds. Collective; takes about a second; 0 without memory. */
double speed_sgemm_peak(struct traincomm *comm, int threads);

/*
 * Measures this machine for the self-check, adding verdicts to the list (common/check.h) and to the
 * report:
 *   cores               hardware threads this process may use
 *   gflops              SGEMM on all of them, where each product waits for the slowest thread as a
 *                       step does
 *   core_types          [{"type", "cores", "gflops"}]: one core of each type by itself
 *   memory_gb_per_sec   copying on all of them (bytes read and written)
 *   clock_ghz           from dependent additions, one per cycle
 */
void speed_measure(json_t *report, json_t *list);
