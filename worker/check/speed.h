/* Speed of this machine's processor and memory. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "worker/comm/traincomm.h"

/* Peak SGEMM rate of OpenBLAS on all threads of all ranks together, by processor time: GFLOP/s of
 * the best of several rounds. Collective; takes about a second; 0 without memory. */
double speed_sgemm_peak(struct traincomm *comm, int threads);

/* Reads three arrays and writes two of them, so that a number is five accesses. Unlike those of
 * STREAM, no store causes a read of what it overwrites, which STREAM does not count. */
static inline void speed_stream_part(float *a, float *b, const float *c, size_t floats)
{
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

    for (size_t i = 0; i + 4 <= floats; i += 4) {
        four before = *(four *)(a + i), sum = before + *(const four *)(c + i);
        *(four *)(a + i) = *(four *)(b + i);
        *(four *)(b + i) = sum;
    }
}

/* The machine's STREAM: GB/s of that on all threads of all ranks together (comm NULL: of this one)
 * on arrays that exceed the caches, the best of several rounds. Collective; takes less than half a
 * second and at least 27 MB a thread, which it frees; 0 without memory. */
double speed_stream(struct traincomm *comm, int threads);

/*
 * Measures this machine for the self-check, adding verdicts to the list (common/check.h) and to the
 * report:
 *   cores               hardware threads this process may use
 *   gflops              SGEMM on all of them, where each product waits for the slowest thread as a
 *                       step does
 *   core_types          [{"type", "cores", "gflops"}]: one core of each type by itself
 *   memory_gb_per_sec   speed_stream on all of them (bytes read and written)
 *   clock_ghz           from dependent additions, one per cycle
 */
void speed_measure(json_t *report, json_t *list);
