/* The end of an attempt: what it means, and that it is stored. */
#pragma once

#include "daemon/job/job_manager_internal.h"

/* Slurm starts the attempt again: *last tells if that is one restart too many. */
int end_judge_put_back(struct job_manager *m, struct active_job *a, bool *last, struct error *e);

/* The reason of the first attempt that failed, which the caller frees; NULL: none did. */
char *end_first_failure(const struct store_job *job);

/* Of DO_STORE_END, DO_STORE_NO_START and DO_STORE_PUT_BACK. */
int end_store(struct job_manager *m, struct active_job *a, struct error *e);
int end_store_no_start(struct job_manager *m, struct active_job *a, struct error *e);
int end_store_put_back(struct job_manager *m, struct active_job *a, struct error *e);

/* Logs in others' formats, what the job measured, old checkpoints. Best effort. */
void end_finish(struct job_manager *m, struct active_job *a);
