/* Carries out what life.h decides, on the loop's thread. */
#pragma once

#include "daemon/job/job_manager_internal.h"

/* What was observed of a job, and what comes of it. As job_state_machine_step; MACHINE_GONE: *a is
 * freed. */
int job_handle(struct job_manager *m, struct active_job *a, const struct job_observation *seen,
               struct error *e);

/* Likewise where nobody waits for the outcome: the actions themselves say what went wrong. */
void job_tell(struct job_manager *m, struct active_job *a, const struct job_observation *seen);
