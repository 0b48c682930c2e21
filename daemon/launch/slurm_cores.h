/* Cores and memory of the nodes that Slurm may give to a job, from slurm.node_cores or Slurm. */
#pragma once

#include "common/error.h"
#include "common/job/job_spec.h"
#include "daemon/launch/slurm_script.h"

struct slurm_cores {
    int64_t cores;        /* of the node with the fewest; hardware threads with cluster.smt */
    int64_t socket_cores; /* the same for a socket; 0: unknown */
    int64_t memory_bytes; /* RealMemory of the node with the least; 0: unknown */
    char source[192];     /* for example "sinfo: the fewest of the 256 nodes of partition big" */
};

/* Looks at the nodes of the job's partition (or Slurm's default) that have its constraint, if that
 * is a single feature, or at those of cluster.hosts. Blocks for up to 10 s. Thread-safe. Errors
 * name the key that would help. Because slurm.node_cores counts cores, Slurm is queried
 * nevertheless with cluster.smt, and for the memory if the document leaves the number of workers
 * open. */
int slurm_cores_find(const struct slurm_settings *settings, const struct job_spec *spec,
                     struct slurm_cores *found, struct error *e);
