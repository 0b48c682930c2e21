/* Parses what Slurm reports about jobs: the JSON of squeue --json, descriptions of states and
 * reasons, and measured energy. Pure functions. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings belong to the JSON; "" if missing. */
struct slurm_reply {
    int64_t id;
    const char *name;
    const char *state; /* PENDING, RUNNING, NODE_FAIL, ... */
    bool completing;   /* ended, but not yet on all its nodes */
    const char *reason, *partition;
    const char *nodes;              /* for example n[1-2] */
    int64_t restarts;               /* requeues by Slurm */
    int64_t exit_code, exit_signal; /* of the script; -1: none */
    int64_t priority;
    double start;         /* Unix time; for a waiting job, when it may start; 0: unknown */
    double limit_seconds; /* time limit of the allocation; NAN: none */
};

/* Reads version 22.05 (v0.0.38) and the later form, in which states are lists and numbers are
 * objects. Returns false if it is not a job. */
bool slurm_reply_read(const json_t *job, struct slurm_reply *reply);

int64_t slurm_reply_ahead(const json_t *jobs, const struct slurm_reply *reply);

/* Formats as "waiting for priority: 3 jobs ahead [Priority]". */
void slurm_reply_waiting(const struct slurm_reply *reply, int64_t ahead, char *text, size_t bytes);

/* Describes how an allocation ended: "it reached its time limit"; NULL: nothing to add. */
const char *slurm_state_words(const char *state);

/*
 * Energy of an allocation, if a plugin of Slurm measures it (AcctGatherEnergyType). The batch
 * script writes at its end (slurm_script.c) attempt-N/slurm-energy:
 *
 *     mpirun 2            how ranks were started, nodes
 *     12.batch|8140       sstat -P -o JobID,ConsumedEnergyRaw, of running steps: joules
 *     12.0||7990          the same of ended steps, by sacct
 *
 * Each step counts its nodes from its start on, whatever runs there, so steps on the same node
 * count it twice.
 */
#define SLURM_ENERGY "slurm-energy"

/* Returns the energy of all nodes in joules: from the extern step; otherwise from the ranks' step,
 * which srun starts on all nodes; otherwise, with mpirun, from the batch script's node plus the
 * step of the daemons on the others. NAN: unknown; 0 and NO_VAL are not measurements. Accepts any
 * text. */
double slurm_energy_read(const char *text);
