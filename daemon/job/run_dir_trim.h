/* What is kept of an ended run: log_limit_bytes and keep_checkpoints. Then its size is measured. */
#pragma once

#include "daemon/job/job_manager_internal.h"

void job_trim_run(struct job_manager *m, const struct active_job *a);

/* Once it is m->trim_next_at: tries again what could not be removed at the end of a run. The store
 * remembers it: job_trim_remember, at the loop's start, takes up what an earlier daemon left. */
void job_trim_again(struct job_manager *m, double now);
void job_trim_remember(struct job_manager *m);
void job_trim_forget(struct job_manager *m); /* at the manager's end */

/* Once it is m->measure_next_at: measures the next job that ended under an older version. */
void job_measure_older(struct job_manager *m, double now);
