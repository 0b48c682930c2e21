/*
 * What is handed to Slurm for an attempt: a batch script with its #SBATCH lines, which sbatch takes
 * and which a person may submit by hand. Pure: the caller writes the file.
 *
 * What the script does on the first node, as the job's user:
 * - its attempt is the number it was made for plus the times that Slurm has put the job back into
 *   its queue (SLURM_RESTART_COUNT), and lies in attempt-N/ as always;
 * - attempt-N/slurm-job gets Slurm's job id. Where another one stands there the script ends with 3:
 *   so an attempt runs once, even if it was submitted twice;
 * - output goes to attempt-N/stdout.log (what Slurm itself says to slurm.log);
 * - the ranks are started by mpirun or srun, and asked to stop behind their step, with a checkpoint
 *   (SIGUSR1), when traind has written cancel-requested or time-limit-reached, when the time limit
 *   is near (it then writes the latter itself), and at SIGUSR1 or SIGTERM from Slurm, which come
 *   before the end of an allocation and at a preemption (then slurm-signal is written);
 * - its last act is attempt-N/exit, the launcher's exit code.
 */
#pragma once

#include "launch/launch.h"

#define SLURM_NAME_BYTES 96

/* "traind-7-2-0123456789abcdef": of job 7, attempt 2, of this daemon and no other. */
void slurm_job_name(const struct launch_request *request, char name[SLURM_NAME_BYTES]);

/* ERR_INVALID: something in it that Slurm cannot take. The caller frees *text. With
 * request->by_hand the script makes its run directory below the folder it is submitted from. */
int slurm_script(const struct launch_request *request, char **text, struct error *e);
