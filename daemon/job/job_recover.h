/* Recovery after a restart. Each job stored as active is searched for by its launcher's pid and
 * start time, or by its name in Slurm. If found, the loop resumes following it; otherwise its run
 * directory tells how it ended. A job whose launcher never passed the gate returns to the queue. */
#pragma once

#include "common/error.h"

struct job_manager;

int job_recover_all(struct job_manager *m, struct error *e);
