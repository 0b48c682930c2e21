/* profile.steps: attempt-N/trace.json (Chrome's trace format, all ranks on rank 0's clock) and
 * attempt-N/layers.txt (rank 0). All calls are collective. Tracing stops before the step after
 * `last`, so it includes an evaluation there. */
#pragma once

#include "worker/run.h"

struct profile;

struct profile *profile_create(struct run *r);
void profile_destroy(struct profile *p); /* NULL is fine */

/* Call before step number `step` (from 1): starts tracing, or stops it and writes the files. */
int profile_before_step(struct profile *p, int64_t step, struct error *e);

/* At the end of the run: writes the files if still tracing; warns if no traced step was reached. */
int profile_finish(struct profile *p, struct error *e);

/* A traincomm_on_span callback: adds the spans of the all-reduce and of agreements to the trace. */
void profile_comm_span(void *context, const char *what, int number, double start, double end,
                       size_t bytes);
