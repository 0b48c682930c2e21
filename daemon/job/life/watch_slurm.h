/* Observes a job in Slurm. */
#ifndef TRAIND_DAEMON_JOB_LIFE_WATCH_SLURM_H
#define TRAIND_DAEMON_JOB_LIFE_WATCH_SLURM_H

#include "daemon/job/inside.h"

/* Brings what Slurm says into the store, and into the job's life. *a stays. */
void watch_slurm(struct job_manager *m, struct active_job *a);

#endif
