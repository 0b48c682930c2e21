/*
 * The queue: jobs in the order of store_job_list's STORE_QUEUE_ORDER, as though each point of
 * priority had let a job wait for priority_seconds already; so whoever waits comes first in the
 * end. queue_plan.h has the rules.
 */
#pragma once

#include "daemon/job/job_manager_internal.h"

/* Starts what fits, and says of the others what they wait for. */
void queue_start_jobs(struct job_manager *m);
