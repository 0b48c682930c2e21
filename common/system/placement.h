/* Where the workers of a machine are placed. mpirun's --map-by slot fills one core after the other:
 * on two sockets of 24 cores the second of two workers with 22 threads would get two cores of the
 * first socket. Unless cluster.bind says otherwise, workers are distributed over NUMA domains if
 * each fits into one, otherwise over sockets. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"

#define PLACEMENT_BYTES   48
#define PLACEMENT_OPTIONS 6

struct placement_parts {
    int64_t parts, cores, cpus;
};

struct placement_machine {
    struct placement_parts numa, sockets, whole;
};

void placement_read(const char *sys, struct placement_machine *machine);

void placement_read_mine(struct placement_machine *machine);

void placement_read_cpus(const cpu_set_t *cpus, struct placement_machine *machine);

struct placement_machine placement_least(struct placement_machine a, struct placement_machine b);

/* Number of cores, or with smt of hardware threads; 0: unknown. */
int64_t placement_slots(const struct placement_machine *machine, bool smt);

/* Finds a CPU for an additional thread of rank `rank`, if `ranks` ranks with this many threads
 * share these CPUs: on a free core, or else a free second hardware thread. Returns -1 if there are
 * too few for all ranks. */
int placement_spare_cpu(const char *sys, const cpu_set_t *cpus, int threads, int ranks, int rank);

struct placement_wish {
    enum job_bind bind;
    bool smt;
    int64_t workers, threads; /* threads: of each worker */
    int mpi;                  /* major version of Open MPI; 0: unknown or irrelevant */
};

struct placement_wish placement_wish_of(const struct job_spec *spec, int64_t threads);

/* Checks that the workers fit into the sockets or NUMA domains that `bind` names; an unknown
 * machine is accepted. Returns ERR_INVALID with the end of a sentence about the machine ("has 2
 * sockets of 16 cores, ..."). */
int placement_check(const struct placement_machine *machine, const struct placement_wish *wish,
                    struct error *e);

/* Options for mpirun. On an unknown machine with bind "auto", workers are packed. */
struct placement {
    char map_by[PLACEMENT_BYTES]; /* for example "numa:PE=22" */
    const char *bind_to;          /* "core", "hwthread" or "none" */
};

/* Parses the major version, for example 5 from "mpirun (Open MPI) 5.0.7" or "Open MPI v5.0.7,
 * package: ..."; 0: unknown. */
int placement_mpi_version(const char *text);

/* Returns whether workers must span sockets, which Open MPI 5 cannot bind: they stay unbound. */
bool placement_spans(const struct placement_machine *machine, const struct placement_wish *wish);

struct placement placement_choose(const struct placement_machine *machine,
                                  const struct placement_wish *wish);

/* Sets options to "--map-by", "numa:PE=22", ..., NULL, which point into *placement. */
void placement_options(const struct placement *placement, const char *options[PLACEMENT_OPTIONS]);
