/* The resources a job needs, and whether this node can run it. Thread-safe. */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/plan/workers.h"
#include "daemon/launch/slurm_cores.h"
#include "common/problem.h"
#include "common/system/host.h"
#include "daemon/store/job_insert.h"

struct job_manager;

/* Converts total cores to slots of this job: hardware threads with cluster.smt, otherwise cores. */
int64_t job_machine_slots(const struct job_spec *spec, int64_t total);
int64_t job_threads(const struct job_spec *spec, int64_t total); /* per worker, with 0 resolved */

/* Returns the slots that a job takes on this machine: workers_per_node x max(1, threads_per_worker,
 * or total / workers if that is 0); 0 for a job that runs on other hosts only. */
int64_t job_slots_needed(const struct job_spec *spec, int64_t total);

/* Returns the smallest slot count among the job's hosts, or total if none specifies one. */
int64_t job_hosts_slots(const struct job_spec *spec, int64_t total);

/* Returns the job's share of the cores of each of its nodes, in (0, 1]. */
double job_node_share(const struct job_spec *spec, int64_t total);

/* Returns the sizes that the queue needs from a plan. */
struct store_job_size job_size(const struct job_manager *m, const struct job_spec *spec,
                               const struct plan *plan);

/* Adds a problem for each reason why the job can never run on this node. Returns a negative error
 * if Slurm cannot start it. */
int job_check_fits(const struct job_manager *m, const struct job_spec *spec,
                   struct problems *problems, struct error *e);

/* Adds a problem if the job needs more slots than the per-user limit. */
void job_check_caps(struct job_manager *m, const struct job_spec *spec, struct problems *problems);

/* The hosts and slots that a job of launcher local occupies. Slots are counted per host name: jobs
 * that give a host's slots ("n1:16") share it; a job that does not has the host to itself. A job
 * takes slots of this machine (traind.conf) only if it names this machine or no hosts at all. */
struct job_hosts {
    struct host *items;
    size_t count;
    int64_t slots; /* slots of each host */
};

/* slots: what the job takes on each host. All zero for a job that names no hosts. Free with
 * job_hosts_clear. */
void job_hosts_of(const struct job_spec *spec, int64_t slots, struct job_hosts *hosts);
void job_hosts_clear(struct job_hosts *hosts);

/* Returns NULL if the job does not use this host. */
const struct host *job_hosts_find(const struct job_hosts *hosts, const char *name);

struct job_cores {
    struct slurm_cores
        node; /* the node that threads are a share of; cores 0: the document sets the threads */
    struct plan_workers workers; /* the chosen number of workers */
};

/* Fills in cluster.workers_per_node and, for a Slurm job, cluster.threads_per_worker if they are
 * not set: each worker gets its share of a node's cores, from Slurm or slurm.node_cores. On this
 * machine, unset threads are derived from the slots at each start. by: the user whose measured
 * speeds may be used. Blocks on Slurm for up to 10 s. Returns a negative error if the cores are
 * unknown, with the reason in *problems. */
int job_share_cores(const struct job_manager *m, struct job_spec *spec, const char *by,
                    struct job_cores *found, struct problems *problems);

/* inputs borrows from *cores. */
void job_cores_to_plan_inputs(const struct job_cores *cores, struct plan_inputs *inputs);
