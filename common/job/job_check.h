/* Constraints between the keys of a job document, and how its global batch is divided among the
 * workers. */
#pragma once

#include "common/job/job_spec.h"
#include "common/problem.h"

/* The largest batch of at most `most` images that divides a worker's share of an update. share,
 * most >= 1. */
int64_t job_batch_even(int64_t share, int64_t most);

/* If global_batch is stated, sets batch_per_worker and (if "auto") accumulate_steps so that nodes x
 * workers_per_node x batch_per_worker x accumulate_steps equals it, or adds a problem with the
 * nearest possible values. stated: the document itself gives batch_per_worker; a preset's gives
 * way. Keys with problems are skipped. */
void job_batch_settle(struct job_spec *spec, bool stated, struct problems *problems);

/* Adds problems of keys that contradict each other, but have none by themselves. */
void job_check_together(const struct job_spec *spec, struct problems *problems);
