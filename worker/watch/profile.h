/* profile.steps: writes attempt-N/trace.json (Chrome's trace format, all ranks on rank 0's clock)
 * and attempt-N/layers.txt (rank 0). All functions are collective. Tracing stops before the step
 * after `last`, so it includes an evaluation after that step. */
#pragma once

#include "worker/run.h"

struct profile;

struct profile *profile_create(struct run *r);
void profile_destroy(struct profile *p); /* accepts NULL */

/* Call before step number `step`, from 1. Starts tracing, or stops it and writes the files. */
int profile_before_step(struct profile *p, int64_t step, struct error *e);

/* Call at the end of the run. Writes the files if still tracing; warns if it never started. */
int profile_finish(struct profile *p, struct error *e);

/* Callback for traincomm_on_span: adds spans of the all-reduce and of agreements. */
void profile_comm_span(void *context, const char *what, int number, double start, double end,
                       size_t bytes);
