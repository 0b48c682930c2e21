/*
 * The queue: jobs in the order of store_job_list's STORE_QUEUE_ORDER, as though each point of
 * priority had let a job wait for priority_seconds already, so that every job is first in the end.
 * job_queue_plan.h has the rules.
 */
#pragma once

struct job_manager;

/* Starts what fits, and stores what the others wait for. On the loop's thread. */
void job_queue_start(struct job_manager *m);
