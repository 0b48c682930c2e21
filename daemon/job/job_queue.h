/* The job queue, ordered by store_job_list's STORE_QUEUE_ORDER: each point of priority counts as
 * priority_seconds of waiting, so every job gets to the head eventually. job_queue_plan.h describes
 * the rules. */
#pragma once

struct job_manager;

/* Starts the jobs that fit and stores what the others wait for. Loop's thread only. */
void job_queue_start(struct job_manager *m);
