/*
 * A node is taken out of use because a failure rule says so. A job's own output may name any host,
 * so a node counts only if Slurm itself says that it failed, or, where an administrator's rule says
 * drain-unverified, if the output names it and it is one of the job's.
 */
#pragma once

struct active_job;
struct job_manager;

/* Calls the command for the node that a->verdict blames, if there is one. Does not wait for it. */
void drain_bad_node(struct job_manager *m, const struct active_job *a);
