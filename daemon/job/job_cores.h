/* How the cores of a job's node are shared out where its document leaves that open. */
#pragma once

#include "common/plan/plan.h"
#include "common/plan/workers.h"
#include "daemon/launch/slurm_cores.h"

struct job_manager;

struct job_cores {
    struct slurm_cores node; /* of which threads are a share; cores 0: the document gives them */
    struct plan_workers workers; /* that were chosen */
};

/* A job without cluster.workers_per_node gets its workers and their threads
 * (common/plan/workers.h), and a job for Slurm without cluster.threads_per_worker these: its
 * workers' share of a node's cores, which Slurm or slurm.node_cores names. On this machine threads
 * that the document leaves open follow from its slots whenever the job starts and are only
 * reported. by: the user whose speeds are known. Waits for Slurm, 10 s at most; thread-safe. Fills
 * *problems and returns the error's code where they are not known. */
int job_share_cores(const struct job_manager *m, struct job_spec *spec, const char *by,
                    struct job_cores *found, struct problems *problems);

/* *inputs borrows from *cores. */
void job_cores_to_plan_inputs(const struct job_cores *cores, struct plan_inputs *inputs);
