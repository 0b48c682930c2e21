/*
 * What every rank really got: cores, threads, NUMA nodes, thread settings; and what is wrong with
 * it. mpirun and Slurm place ranks by flags that are easily wrong, and nothing but slowness tells.
 */
#pragma once

#include <sched.h>

#include <jansson.h>

#include "common/system/placement.h"
#include "worker/kernels/gemm.h"

#define BINDING_WORD_BYTES 32

/* Of one rank; plain bytes, so that one gather carries it. */
struct binding {
    cpu_set_t cpus;        /* that it may run on */
    cpu_set_t thread_cpus; /* all that its threads may run on */
    int threads;           /* it computes with */
    int comm_cpu;          /* of its thread that sums gradients between machines; -1: none */
    int machine_cpus;      /* online where it is */
    int cores;             /* of its cpus; 0: not known */
    int sockets;           /* that its cpus lie in; 0: not known */
    int numa_cores;        /* of the smallest NUMA domain of its machine; 0: not known */
    unsigned numa_nodes;   /* bit n: some of its cpus are of node n (the last bit: or above) */
    char omp_threads[BINDING_WORD_BYTES];  /* OMP_NUM_THREADS; "": not set */
    char blas_threads[BINDING_WORD_BYTES]; /* OPENBLAS_NUM_THREADS; "": not set */
    char kernels[BINDING_WORD_BYTES];      /* kernels_kind(); with bf16 its kind too */
    char openblas[GEMM_LIBRARY_BYTES];     /* gemm_library() */
};

void binding_read(int threads, struct binding *binding); /* of the calling rank */

/* hosts[i]: rank i's. asked: by the job; its threads are not looked at. One text with its remedy
 * for each kind of trouble, of the first ranks that have it: a new array of strings. Pure. */
json_t *binding_problems(const struct binding *ranks, const char *const *hosts, int count,
                         const struct placement_wish *asked);

/* "0-3,8": the caller gives room for it; cut if there is not enough. */
void binding_cpus_to_text(const cpu_set_t *cpus, char *text, size_t bytes);
