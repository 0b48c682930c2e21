/*
 * RUN/provenance.json: what each attempt of a run was computed with, so that a later reader, or a
 * second run of the same job, can tell why bits are the same or differ. Shape:
 * schema/api/provenance.json, "Provenance".
 *
 * Rank 0 writes it when the first step may begin, and again when the run has ended, then with the
 * digests of its weights, losses and evaluations. A failure is a warning: no training ends for it.
 */
#pragma once

#include "worker/run.h"

/* Gathers what the machines compute with, and writes the file. gradients: NULL: none are summed.
 * Collective. */
int provenance_begin(struct run *r, const struct traincomm_gradients *gradients, struct error *e);

/* A step, and an evaluation: into the digests of all of them. */
void provenance_step(struct run *r, int64_t step, double loss, double grad_norm);
void provenance_evaluation(struct run *r, int64_t step, const struct evaluation *v);

/* The end, on rank 0: status as in result.json. */
void provenance_end(struct run *r, const char *status, int64_t steps);
