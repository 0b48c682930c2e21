/* How a job document's global batch is shared out over its workers. */
#pragma once

#include "common/job/job_spec.h"
#include "common/problem.h"

/* The largest batch of at most `most` images that divides a worker's share of an update, so that
 * share / batch equal batches make it up. share, most >= 1. */
int64_t job_batch_even(int64_t share, int64_t most);

/*
 * Where the document states global_batch: sets batch_per_worker and (where it is "auto")
 * accumulate_steps, so that nodes x workers_per_node x batch_per_worker x accumulate_steps is
 * global_batch, or adds a problem that names the nearest values that would do. stated: the document
 * itself gives batch_per_worker; a preset's or the default then gives way. Keys that have a problem
 * already are left alone.
 */
void job_batch_settle(struct job_spec *spec, bool stated, struct problems *problems);
