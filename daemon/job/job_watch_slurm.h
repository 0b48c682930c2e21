/* Observes a job in Slurm. */
#pragma once

#include "daemon/job/job_manager_internal.h"

/* Brings what Slurm says into the store, and into the job's life. *a stays. */
void watch_slurm(struct job_manager *m, struct active_job *a);
