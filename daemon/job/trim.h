/* What is kept of an ended run: log_limit_bytes and keep_checkpoints. */
#ifndef TRAIND_DAEMON_JOB_TRIM_H
#define TRAIND_DAEMON_JOB_TRIM_H

#include "daemon/job/inside.h"

void job_trim_run(const struct job_manager *m, const struct active_job *a);

#endif
