/* Calls to Slurm through its commands (sbatch, squeue, scancel, sinfo); each blocks until the
 * answer. Called from the thread of slurm.c; slurm_call_nodes from any thread.
 *
 * ERR_UNREACHABLE: no clear answer, so the request may have been carried out. Any other error is a
 * rejection by Slurm, with its message. */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/error.h"

struct slurm_call {
    const atomic_bool *quit; /* aborts a call */
    double seconds;          /* time limit; 0: as long as Slurm's own clients try */
};

int slurm_call_submit(const struct slurm_call *c, const char *script_path, int64_t *job_id,
                      struct error *e);

/* Gets all jobs known to Slurm, a new array for slurm_reply_read. */
int slurm_call_jobs(const struct slurm_call *c, json_t **jobs, struct error *e);

int slurm_call_cancel(const struct slurm_call *c, int64_t job_id, struct error *e);

/* Gets nodes as a new array of {"node", "cores", "cpus" (hardware threads), "sockets", "memory"
 * (MiB; 1 if slurm.conf does not set it), "features"}: those of a partition (NULL: the default
 * one), or of a list "n1,n[3-4]" (NULL: all of the partition). */
int slurm_call_nodes(const struct slurm_call *c, const char *partition, const char *hosts,
                     json_t **nodes, struct error *e);

/* Returns whether a command's error message leaves the outcome unknown. */
bool slurm_call_is_unclear(const char *words);
