/* Large square SGEMMs by OpenBLAS on several threads at once: the yardstick of `trainctl bench` and
 * of the self-check. */
#pragma once

struct sgemm;

/* size: rows and columns of a matrix; each thread has three. NULL: no memory. */
struct sgemm *sgemm_create(int size, int threads);

/* One product on every thread, all begun together: the sum of the threads' GFLOP/s, by the time
 * that their processors spent on it, so that programs beside them do not make it less. */
double sgemm_round(struct sgemm *s);

void sgemm_destroy(struct sgemm *s); /* NULL is fine */
