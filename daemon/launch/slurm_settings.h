/* slurm.* of traind.conf. */
#pragma once

#include <stdint.h>

/* Strings are the configuration's and must outlive all that is made with them. */
struct slurm_settings {
    int64_t srun;        /* ranks are started by srun --mpi=pmix, else by mpirun */
    const char *account; /* of jobs that name none; NULL: Slurm's default */
    const char *options; /* more options of sbatch; NULL: none */
    const char *setup;   /* a shell file that each script reads first; NULL: none */
    int64_t poll_seconds;
    int64_t node_cores; /* of a node: threads_per_worker 0 shares them out; 0: ask Slurm */
};
