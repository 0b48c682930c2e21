/*
 * Recovery after a restart: each job that is stored as active is looked for, by its launcher's pid
 * and start time or by its name in Slurm. One that is found is followed again, one that is gone is
 * judged by its run directory. A job that never passed the gate goes back to the queue.
 */
#pragma once

#include "common/error.h"

struct job_manager;

int job_recover_all(struct job_manager *m, struct error *e);
