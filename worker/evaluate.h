/*
 * Evaluation on all ranks: every image exactly once, top-1, top-5 and the mean loss over all of
 * them. Progress lines have the form of the seeds' log: "Evaluation [25/250]".
 */
#pragma once

#include "worker/run.h"

/* Averages the running statistics over the ranks first. A request to stop (run_stop_requested on
 * any rank) ends it early: *stopped is then true on all ranks and *out says nothing. step and epoch
 * go into the events. predictions: also write attempt-N/predictions.csv, for which the names of all
 * images may have to be read: that is behind out->ended and no part of out->seconds. Collective. */
int evaluate(struct run *r, int64_t step, double epoch, bool predictions, struct evaluation *out,
             bool *stopped, struct error *e);

/* For predictions.csv alone, of weights that were evaluated without it: the numbers are the same,
 * so neither an event nor the provenance tells them again. Collective. */
int evaluate_again(struct run *r, int64_t step, bool *stopped, struct error *e);

/* mode "eval": evaluate the weights of model.init, write run_stop and result.json. */
int evaluate_only(struct run *r, struct error *e);
