/*
 * After a restart: every job that the store calls active is looked for by its launcher's pid and
 * start time, or by its name in Slurm. One that is there is followed on; one that is gone is judged
 * by its run directory. A job that was never let through the gate goes back to the queue.
 */
#pragma once

#include "common/error.h"

struct job_manager;

int job_recover_all(struct job_manager *m, struct error *e);
