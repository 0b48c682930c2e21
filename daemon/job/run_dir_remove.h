/* Removing runs, but for job_remove (job.h). */
#pragma once

#include "daemon/job/job_manager_internal.h"

void job_finish_removals(struct job_manager *m); /* that a killed daemon left half done */
void job_keep_limits(struct job_manager *m);    /* keep_audit_days; keep_runs, in the next rounds */
void job_go_on_removing(struct job_manager *m); /* in each round: a little, if it is time */
