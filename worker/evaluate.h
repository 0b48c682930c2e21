/* Evaluation on all ranks: top-1, top-5 and mean loss over all images, each used exactly once.
 * Progress lines: "Evaluation [25/250]". */
#pragma once

#include "worker/run.h"

/* Averages the running statistics over the ranks, then evaluates. A requested stop on any rank ends
 * it early: *stopped is then true on all ranks and *out is not set. predictions: also writes
 * attempt-N/predictions.csv, after out->ended. Collective. */
int evaluate(struct run *r, int64_t step, double epoch, bool predictions, struct evaluation *out,
             bool *stopped, struct error *e);

/* Repeats an evaluation only to write predictions.csv, without event and provenance. Collective. */
int evaluate_again(struct run *r, int64_t step, bool *stopped, struct error *e);

/* Mode "eval": evaluates the weights of model.init, writes run_stop and result.json. Collective. */
int evaluate_only(struct run *r, struct error *e);
