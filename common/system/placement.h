/*
 * Where the workers of a machine go. mpirun's --map-by slot packs them core by core, so that on two
 * sockets of 24 cores the second of two workers with 22 threads would get two cores of the first
 * socket: unless cluster.bind says otherwise, workers are dealt out over NUMA domains wherever each
 * fits into one, else over sockets.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"

#define PLACEMENT_BYTES   48
#define PLACEMENT_OPTIONS 6

/* Parts of a machine, and the cores and hardware threads of the smallest. parts 0: not known. */
struct placement_parts {
    int64_t parts, cores, cpus;
};

struct placement_machine {
    struct placement_parts numa, sockets, whole;
};

/* The whole of this machine. sys: "/sys", or a copy for tests. */
void placement_read(const char *sys, struct placement_machine *machine);

/* This machine, as far as the calling thread may use it. */
void placement_read_mine(struct placement_machine *machine);

/* The parts of this machine that these cpus lie in. */
void placement_read_cpus(const cpu_set_t *cpus, struct placement_machine *machine);

/* What fits on both. */
struct placement_machine placement_least(struct placement_machine a, struct placement_machine b);

/* Cores, or with smt hardware threads, of the whole machine; 0: not known. */
int64_t placement_slots(const struct placement_machine *machine, bool smt);

/* Of ranks that may all use these cpus, and have so many threads together, one's cpu for another
 * thread: of a core of its own, else a second hardware thread. -1: there is not one for each. */
int placement_spare_cpu(const char *sys, const cpu_set_t *cpus, int threads, int ranks, int rank);

/* What is to be placed on a machine, and how (cluster.bind, cluster.smt). */
struct placement_wish {
    enum job_bind bind;
    bool smt;
    int64_t workers, threads; /* of each worker */
    int mpi;                  /* Open MPI's major version, where it matters; 0: not known */
};

/* With so many threads a worker. */
struct placement_wish placement_wish_of(const struct job_spec *spec, int64_t threads);

/* Whether the machine has room for it, in parts of the kind that bind names; what is not known is
 * taken to have. ERR_INVALID, with words that end a sentence about the machine ("has 2 sockets of
 * 16 cores, ..."). */
int placement_check(const struct placement_machine *machine, const struct placement_wish *wish,
                    struct error *e);

/* For mpirun. A machine that is not known gets its workers packed where bind is auto. */
struct placement {
    char map_by[PLACEMENT_BYTES]; /* "numa:PE=22" */
    const char *bind_to;          /* "core", "hwthread" or "none" */
};

/* 5 of "mpirun (Open MPI) 5.0.7" and "Open MPI v5.0.7, package: ..."; 0: of something else. */
int placement_mpi_version(const char *words);

/* Whether workers can only be packed over the sockets' borders: Open MPI 5 binds no worker so, and
 * the workers are then left to the kernel. */
bool placement_spans(const struct placement_machine *machine, const struct placement_wish *wish);

struct placement placement_choose(const struct placement_machine *machine,
                                  const struct placement_wish *wish);

/* "--map-by", "numa:PE=22", ..., NULL: as long as the placement is there. */
void placement_options(const struct placement *placement, const char *options[PLACEMENT_OPTIONS]);
