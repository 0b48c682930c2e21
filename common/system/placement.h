/* Where the workers of a machine go. mpirun's --map-by slot packs them core by core: on two sockets
 * of 24 cores the second of two workers with 22 threads would get two cores of the first socket.
 * Unless cluster.bind says otherwise, workers are distributed over NUMA domains if each fits into
 * one, else over sockets. */
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

/* Cores, or with smt hardware threads; 0: not known. */
int64_t placement_slots(const struct placement_machine *machine, bool smt);

/* For ranks that share these cpus with this many threads: a cpu for one more thread of each, on its
 * own core or else a second hardware thread. -1: there are not enough. */
int placement_spare_cpu(const char *sys, const cpu_set_t *cpus, int threads, int ranks, int rank);

struct placement_wish {
    enum job_bind bind;
    bool smt;
    int64_t workers, threads; /* of each worker */
    int mpi;                  /* Open MPI's major version, where it matters; 0: not known */
};

struct placement_wish placement_wish_of(const struct job_spec *spec, int64_t threads);

/* Whether it fits, by parts of the kind that bind names; unknown machines do. ERR_INVALID with the
 * end of a sentence about the machine ("has 2 sockets of 16 cores, ..."). */
int placement_check(const struct placement_machine *machine, const struct placement_wish *wish,
                    struct error *e);

/* Options of mpirun. On an unknown machine workers are packed if bind is auto. */
struct placement {
    char map_by[PLACEMENT_BYTES]; /* "numa:PE=22" */
    const char *bind_to;          /* "core", "hwthread" or "none" */
};

/* 5 for "mpirun (Open MPI) 5.0.7" and "Open MPI v5.0.7, package: ..."; 0: unknown. */
int placement_mpi_version(const char *words);

/* Whether workers must span sockets: Open MPI 5 cannot bind such, so they stay unbound. */
bool placement_spans(const struct placement_machine *machine, const struct placement_wish *wish);

struct placement placement_choose(const struct placement_machine *machine,
                                  const struct placement_wish *wish);

/* "--map-by", "numa:PE=22", ..., NULL; valid as long as placement. */
void placement_options(const struct placement *placement, const char *options[PLACEMENT_OPTIONS]);
