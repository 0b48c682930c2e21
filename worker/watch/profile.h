/*
 * profile.steps: attempt-N/trace.json (Chrome's trace format, of all ranks on rank 0's clock) and
 * attempt-N/layers.txt (time, GFLOP/s and share of SGEMM's peak of each layer on rank 0).
 *
 * Every call is collective. Tracing begins before step `first` and ends before the step behind
 * `last`, so that an evaluation in between or behind it is in it.
 */
#pragma once

#include "worker/run.h"

struct profile;

int profile_create(struct run *r, struct profile **out, struct error *e);
void profile_destroy(struct profile *p); /* NULL is fine */

/* Before step number `step` (from 1): starts tracing, or ends it and writes. */
int profile_before_step(struct profile *p, int64_t step, struct error *e);

/* At the end of the run: writes what was not written; a warning event if the steps were never
 * reached. */
int profile_finish(struct profile *p, struct error *e);

/* For traincomm_on_span: the spans of the all-reduce and of agreements, into the trace. */
void profile_comm_span(void *context, const char *what, int number, double start, double end,
                       size_t bytes);
