/*
 * Calls to Slurm by its commands (sbatch, squeue, scancel, sinfo), each of which waits for its
 * answer. From the thread of slurm.c; slurm_call_nodes from any.
 *
 * ERR_UNREACHABLE: no answer, or none that tells; what was asked for may have been done. Any other
 * error is Slurm's refusal, in its own words.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/error.h"
#include "daemon/launch/slurm_settings.h"

struct slurm_call {
    const struct slurm_settings *settings;
    const atomic_bool *quit; /* ends a call that is under way */
    double seconds;          /* it may take; 0: as long as Slurm's own clients try */
};

int slurm_call_submit(const struct slurm_call *c, const char *script_path, int64_t *job_id,
                      struct error *e);

/* All jobs that Slurm knows: an array as slurm_reply.h reads it, a new reference. */
int slurm_call_jobs(const struct slurm_call *c, json_t **jobs, struct error *e);

/* Ends a job, waiting or running. */
int slurm_call_cancel(const struct slurm_call *c, int64_t job_id, struct error *e);

/* Nodes of the cluster, as [{"node", "cores", "cpus" (hardware threads), "sockets", "memory" (MiB;
 * 1 where the cluster's settings do not say it), "features"}], a new reference: of a partition
 * (NULL: the default one), or those of a list "n1,n[3-4]" (NULL: all of the partition). */
int slurm_call_nodes(const struct slurm_call *c, const char *partition, const char *hosts,
                     json_t **nodes, struct error *e);

/* What no one can know the outcome of: the words of a command say so. */
bool slurm_call_is_unclear(const char *words);
