/* Constraints between keys of a job document, and division of its global batch among workers. */
#pragma once

#include "common/job/job_spec.h"
#include "common/problem.h"

/* Returns the largest batch of at most `max` images that divides a worker's share of an update
 * evenly. share and max must be >= 1. */
int64_t job_batch_even(int64_t share, int64_t max);

/* If global_batch is given, sets batch_per_worker and (if "auto") accumulate_steps such that nodes
 * x workers_per_node x batch_per_worker x accumulate_steps equals it, or adds a problem with the
 * nearest possible values. stated: the document itself gives batch_per_worker; the value of a
 * preset is replaced. Keys that have problems are ignored. */
void job_batch_settle(struct job_spec *spec, bool stated, struct problems *problems);

/* Adds problems for keys that are valid individually but contradict each other. */
void job_check_together(const struct job_spec *spec, struct problems *problems);
