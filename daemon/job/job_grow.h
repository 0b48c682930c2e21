/* Growth of a running job with restart.grow that has fewer hosts than its document named: asks
 * those hosts now and then, without waiting for them, and finds out whether the job could go on
 * with more of them at once. The state machine then stops it with a checkpoint (ON_MAY_GROW), and
 * job_replan_with_hosts plans it again. Loop's thread only. */
#pragma once

#include <stdbool.h>

struct active_job;
struct job_manager;

/* Returns whether the job is to be stopped for that, also if an earlier daemon had decided so. */
bool job_grow_is_due(struct job_manager *m, struct active_job *a);
