/* Cores and memory of the nodes Slurm may give to a job, by slurm.node_cores or by Slurm itself. */
#pragma once

#include "common/error.h"
#include "common/job/job_spec.h"
#include "daemon/launch/slurm_script.h"

struct slurm_cores {
    int64_t cores;        /* of the node with the fewest; hardware threads with cluster.smt */
    int64_t socket_cores; /* likewise of a socket; 0: unknown */
    int64_t memory_bytes; /* RealMemory of the node with the least; 0: unknown */
    char source[192];     /* "sinfo: the fewest of the 256 nodes of partition big" */
};

/* Looks at the nodes of the job's partition (or Slurm's default) that have its constraint, if that
 * is a single feature, or at those of cluster.hosts. Waits for Slurm for at most 10 s. Thread-safe.
 * An error names the key that would help. slurm.node_cores counts cores, so with cluster.smt Slurm
 * is asked all the same, and so it is for the memory if the document leaves the number of workers
 * open. */
int slurm_cores_find(const struct slurm_settings *settings, const struct job_spec *spec,
                     struct slurm_cores *found, struct error *e);
