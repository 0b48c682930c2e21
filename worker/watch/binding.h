/* The cores, NUMA nodes and thread settings that every rank got, and problems with them, which
 * otherwise only show as slowness. */
#pragma once

#include <jansson.h>
#include <sched.h>

#include "common/system/placement.h"
#include "worker/kernels/gemm.h"
#include "worker/run.h"

#define BINDING_WORD_BYTES 32

/* One rank's; plain bytes, for a gather */
struct binding {
    cpu_set_t cpus;        /* the rank may run on these */
    cpu_set_t thread_cpus; /* union over its threads */
    int threads;           /* compute threads */
    int comm_cpu;          /* of the thread that sums gradients between machines, or -1 */
    int machine_cpus;      /* online CPUs of its machine */
    int cores;             /* among its CPUs; 0: unknown */
    int sockets;           /* spanned by its CPUs; 0: unknown */
    int numa_cores;        /* of the machine's smallest NUMA domain; 0: unknown */
    unsigned numa_nodes;   /* bit n: has CPUs of node n; the last bit also stands for higher ones */
    char omp_threads[BINDING_WORD_BYTES];  /* OMP_NUM_THREADS, "" if unset */
    char blas_threads[BINDING_WORD_BYTES]; /* OPENBLAS_NUM_THREADS, "" if unset */
    char kernels[BINDING_WORD_BYTES];      /* isa_level(), with bf16_kind_name() for bf16 */
    char openblas[GEMM_LIBRARY_BYTES];
};

void binding_read(int threads, struct binding *binding); /* of the calling rank */

/* hosts[i]: host of rank i. asked: by the job; its threads are ignored. Returns a new array of
 * messages with remedies, one per kind of problem. Pure. */
json_t *binding_problems(const struct binding *ranks, const char *const *hosts, int count,
                         const struct placement_wish *asked);

/* Writes a CPU list such as "0-3,8", truncated to the buffer. */
void binding_cpus_to_text(const cpu_set_t *cpus, char *text, size_t bytes);

/* Different kernels of the engine or OpenBLAS, which each host's processor and environment select,
 * round differently: results are then not reproducible, and the replicas of the weights drift
 * apart. */

#define KERNEL_KINDS_HOSTS 64 /* listed per kind */

/* Returns a new array [{"kernels", "openblas", "hosts"}], rank 0's kind first. Pure. */
json_t *kernel_kinds(const struct binding *ranks, const char *const *hosts, int count);

/* Returns a new string with the warning for more than one kind, else NULL. */
json_t *kernel_kinds_problem(const json_t *kinds);

/* Gathers all bindings; rank 0 prints a table and fills r->warnings, r->binding and
 * r->kernel_kinds. Collective. */
int binding_report(struct run *r, struct error *e);
