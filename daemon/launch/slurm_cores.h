/* How many cores, and how much memory, a node has that Slurm may give to a job: asked of Slurm, or
 * as slurm.node_cores says. */
#pragma once

#include "common/error.h"
#include "common/job/job_spec.h"
#include "daemon/launch/slurm_settings.h"

struct slurm_cores {
    int64_t cores;        /* of the node with the fewest; with cluster.smt its hardware threads */
    int64_t socket_cores; /* likewise of a socket; 0: not known */
    int64_t memory_bytes; /* RealMemory of the node with the least; 0: not known */
    char source[192];     /* "sinfo: the fewest of the 256 nodes of partition big" */
};

/* Of the nodes of the job's partition (or Slurm's default) that have its constraint, as far as that
 * is a single feature; or of cluster.hosts. Waits for Slurm, 10 s at most. Thread-safe. An error
 * says which key would tell. slurm.node_cores are cores: with cluster.smt Slurm is asked all the
 * same, and where the document leaves the number of workers open, for the memory. */
int slurm_cores_find(const struct slurm_settings *settings, const struct job_spec *spec,
                     struct slurm_cores *found, struct error *e);
