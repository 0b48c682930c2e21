/* What a job takes of its machines, and whether this node can run it. Thread-safe. */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/plan/workers.h"
#include "daemon/launch/slurm_cores.h"
#include "common/problem.h"
#include "common/system/host.h"
#include "daemon/store/job_insert.h"

struct job_manager;

/* total cores as slots of the job's kind: with cluster.smt their hardware threads. */
int64_t job_machine_slots(const struct job_spec *spec, int64_t total);
int64_t job_threads(const struct job_spec *spec, int64_t total); /* per worker, resolved */

/* Slots of this machine that a job takes: workers_per_node x max(1, threads_per_worker, or total /
 * workers when 0); 0 for one that runs on other hosts alone. */
int64_t job_slots_needed(const struct job_spec *spec, int64_t total);

/* The smallest slot count among the job's hosts; total if none gives one. */
int64_t job_hosts_slots(const struct job_spec *spec, int64_t total);

/* The part that the job takes of each of its nodes' cores: above 0, at most 1. */
double job_node_share(const struct job_spec *spec, int64_t total);

/* What the queue must know of a plan. */
struct store_job_size job_size(const struct job_manager *m, const struct job_spec *spec,
                               const struct plan *plan);

/* Adds as problems why it can never run on this node. Negative: Slurm cannot start it. */
int job_check_fits(const struct job_manager *m, const struct job_spec *spec,
                   struct problems *problems, struct error *e);

/* Adds a problem if it takes more slots than one user may. */
void job_check_caps(struct job_manager *m, const struct job_spec *spec, struct problems *problems);

/*
 * What a job of launcher local takes of its hosts. Slots are counted for each host by its name: a
 * job that gives a host's slots ("n1:16") shares them with others that do, one that does not has
 * the host to itself. Of this machine's own slots (traind.conf) a job takes its part only if it
 * names this machine, or no hosts at all.
 */
struct job_hosts {
    struct host *items;
    size_t count;
    int64_t slots; /* of each */
};

/* slots: that it takes of each host. All zero for a job that names no hosts. Free with
 * job_hosts_clear. */
void job_hosts_of(const struct job_spec *spec, int64_t slots, struct job_hosts *hosts);
void job_hosts_clear(struct job_hosts *hosts);

/* NULL: the job does not name it. */
const struct host *job_hosts_find(const struct job_hosts *hosts, const char *name);

struct job_cores {
    struct slurm_cores node; /* of which threads are a share; cores 0: the document gives them */
    struct plan_workers workers; /* that were chosen */
};

/* A job without cluster.workers_per_node gets its workers and their threads, and a job for Slurm
 * without cluster.threads_per_worker its workers' share of a node's cores, which Slurm or
 * slurm.node_cores names. On this machine open threads follow from the slots at each start. by: the
 * user whose speeds are known. Waits for Slurm, 10 s at most. Negative: not known, as *problems
 * says. */
int job_share_cores(const struct job_manager *m, struct job_spec *spec, const char *by,
                    struct job_cores *found, struct problems *problems);

/* *inputs borrows from *cores. */
void job_cores_to_plan_inputs(const struct job_cores *cores, struct plan_inputs *inputs);
