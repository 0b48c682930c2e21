/* RUN/provenance.json: what each attempt was computed with, to explain why the bits of two runs of
 * a job are the same or differ (schema/api/provenance.json, "Provenance"). Rank 0 writes it before
 * the first step and adds the digests of the results at the end. Errors are warnings. */
#pragma once

#include "worker/run.h"

/* Gathers the facts of all machines and writes the file. gradients: NULL if not summed.
 * Collective. */
int provenance_begin(struct run *r, const struct traincomm_gradients *gradients, struct error *e);

/* Add a step or an evaluation to the digests. */
void provenance_step(struct run *r, int64_t step, double loss, double grad_norm);
void provenance_evaluation(struct run *r, int64_t step, const struct evaluation *v);

/* Adds the result on rank 0; status as in result.json. */
void provenance_end(struct run *r, const char *status, int64_t steps);
