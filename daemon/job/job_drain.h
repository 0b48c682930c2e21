/*
 * Draining a node for a failure rule. A job's own output may name any host, so a node counts only
 * if Slurm itself reports that it failed, or, with drain-unverified in an administrator's rule, if
 * the output names it and it is one of the job's.
 */
#pragma once

struct active_job;
struct job_manager;

/* Calls drain_command for the node that a->verdict blames, if any, without waiting for it. */
void drain_bad_node(struct job_manager *m, const struct active_job *a);
