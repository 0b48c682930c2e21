/*
 * Calls to Slurm by its commands (sbatch, squeue, scancel, sinfo); each waits for the answer.
 * Called from the thread of slurm.c; slurm_call_nodes from any.
 *
 * ERR_UNREACHABLE: no clear answer, so the request may have been carried out. Any other error is
 * Slurm's refusal, in its own words.
 */
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

/* All jobs Slurm has, an array for slurm_reply_read; a new reference. */
int slurm_call_jobs(const struct slurm_call *c, json_t **jobs, struct error *e);

int slurm_call_cancel(const struct slurm_call *c, int64_t job_id, struct error *e);

/* Nodes as [{"node", "cores", "cpus" (hardware threads), "sockets", "memory" (MiB; 1 if slurm.conf
 * does not set it), "features"}], a new reference: of a partition (NULL: the default one), or of a
 * list "n1,n[3-4]" (NULL: all of the partition). */
int slurm_call_nodes(const struct slurm_call *c, const char *partition, const char *hosts,
                     json_t **nodes, struct error *e);

/* Whether a command's message means that the outcome is unknown. */
bool slurm_call_is_unclear(const char *words);
