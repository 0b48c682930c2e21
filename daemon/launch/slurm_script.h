/*
 * The batch script of an attempt with its #SBATCH lines, for sbatch or for a person to submit.
 * Pure: the caller writes the file.
 *
 * The script runs on the first node as the job's user:
 * - its attempt is the number it was made for plus the number of requeues (SLURM_RESTART_COUNT), in
 *   attempt-N/ as always;
 * - it writes Slurm's job id to attempt-N/slurm-job, and ends with 3 if another one is there, so an
 *   attempt runs once even if it was submitted twice;
 * - output goes to attempt-N/stdout.log, Slurm's own messages to slurm.log;
 * - it starts the ranks by mpirun or srun, and makes them stop after their step, with a checkpoint
 *   (SIGUSR1), when traind has written cancel-requested or time-limit-reached, when the time limit
 * is near (it then writes the latter itself), and at SIGUSR1 or SIGTERM from Slurm, which precede
 * the end of an allocation and a preemption (it then writes slurm-signal);
 * - last, it writes attempt-N/exit, the launcher's exit code.
 */
#pragma once

#include "launch/launch.h"

/* The keys slurm.* of traind.conf. Strings belong to the configuration, which must outlive this. */
struct slurm_settings {
    bool srun;           /* start ranks with srun --mpi=pmix instead of mpirun */
    const char *account; /* account of jobs that do not set one; NULL: Slurm's default */
    const char *options; /* additional sbatch options; NULL: none */
    const char *setup;   /* a shell file that each script sources first; NULL: none */
    int64_t poll_seconds;
    int64_t node_cores; /* cores per node, for threads_per_worker 0; 0: ask Slurm */
};

#define SLURM_NAME_BYTES 96

/* Formats as "traind-7-2-0123456789abcdef": job 7, attempt 2, and a digest unique to this job. */
void slurm_job_name(const struct launch_request *request, char name[SLURM_NAME_BYTES]);

/* Creates the script. ERR_INVALID: Slurm cannot run it. The caller frees *text. With
 * request->by_hand, the script creates its run directory in the folder it is submitted from. */
int slurm_script(const struct launch_request *request, char **text, struct error *e);

/* Returns cluster.hosts in Slurm's form, "n1,n2", without slots. The caller frees it. */
char *slurm_host_list(const struct job_spec *spec);
