/*
 * Which kernels the ranks compute with: the engine's and OpenBLAS's are chosen by the processor and
 * the environment of each host. Other kernels round differently, so where they differ the same job
 * does not give the same bits, and the replicas of the weights drift apart.
 */
#pragma once

#include "worker/watch/binding.h"

#define KERNEL_KINDS_HOSTS 64 /* of one kind, that are named */

/* hosts[i]: rank i's. [{"kernels", "openblas", "hosts"}], rank 0's first: a new array. Pure. */
json_t *kernel_kinds(const struct binding *ranks, const char *const *hosts, int count);

/* What to say of kinds where there are more than one; NULL: nothing. A new string. */
json_t *kernel_kinds_problem(const json_t *kinds);
