/* The cores, NUMA nodes and thread settings that each rank got, and warnings about unfavourable
 * ones, whose only other symptom is slowness. */
#pragma once

#include <jansson.h>
#include <sched.h>

#include "common/system/placement.h"
#include "worker/kernels/gemm.h"
#include "worker/run.h"

#define BINDING_WORD_BYTES 32

/* Binding of one rank; plain data, so that it can be gathered */
struct binding {
    cpu_set_t cpus;        /* CPUs the rank may run on */
    cpu_set_t thread_cpus; /* union over its threads */
    int threads;           /* number of compute threads */
    int comm_cpu;          /* CPU of the thread that sums gradients between machines, or -1 */
    int machine_cpus;      /* online CPUs of the rank's machine */
    int cores;             /* cores among its CPUs; 0: unknown */
    int sockets;           /* sockets spanned by its CPUs; 0: unknown */
    int numa_cores;        /* cores of the machine's smallest NUMA domain; 0: unknown */
    unsigned numa_nodes; /* bit n: has CPUs of node n; the last bit also represents higher nodes */
    char omp_threads[BINDING_WORD_BYTES];  /* OMP_NUM_THREADS, "" if unset */
    char blas_threads[BINDING_WORD_BYTES]; /* OPENBLAS_NUM_THREADS, "" if unset */
    char kernels[BINDING_WORD_BYTES];      /* isa_level(), with bf16_kind_name() for bf16 */
    char openblas[GEMM_LIBRARY_BYTES];
};

void binding_read(int threads, struct binding *binding); /* reads that of the calling rank */

/* Returns a new array of warnings with remedies, one per kind of problem. hosts[i]: host of rank i.
 * asked: the job's request, whose number of threads is ignored. Pure function. */
json_t *binding_problems(const struct binding *ranks, const char *const *hosts, int count,
                         const struct placement_wish *asked);

/* Writes a CPU list such as "0-3,8", truncated to `bytes`. */
void binding_cpus_to_text(const cpu_set_t *cpus, char *text, size_t bytes);

/* Different kernels of the engine or OpenBLAS, chosen by each host's processor and environment,
 * round differently: results are then not reproducible, and the replicas of the weights diverge. */

#define KERNEL_KINDS_HOSTS 64 /* hosts listed per kind */

/* Returns a new array [{"kernels", "openblas", "hosts"}], rank 0's kind first. Pure function. */
json_t *kernel_kinds(const struct binding *ranks, const char *const *hosts, int count);

/* Returns a new string with a warning if there is more than one kind, else NULL. */
json_t *kernel_kinds_problem(const json_t *kinds);

/* Gathers the bindings of all ranks; rank 0 prints a table and fills r->warnings, r->binding and
 * r->kernel_kinds. Collective. */
int binding_report(struct run *r, struct error *e);
