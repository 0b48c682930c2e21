/* The job queue, ordered by store_job_list's STORE_QUEUE_ORDER: each point of priority counts as
 * priority_seconds of waiting, so every job gets to the head eventually. job_queue_plan.h describes
 * the rules. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct active_job;
struct job_manager;
struct store_job;

/* Starts the jobs that fit and stores what the others wait for. Loop's thread only. */
void job_queue_start(struct job_manager *m);

/* Returns whether a running job would start again at once, with these slots of this machine, if it
 * ended now: no job may wait before its place in the queue. Removes from hosts, entries of
 * cluster.hosts, those that other running jobs use. Loop's thread only. */
bool job_queue_would_start(struct job_manager *m, const struct active_job *a,
                           const struct store_job *job, int64_t slots, json_t *hosts);
