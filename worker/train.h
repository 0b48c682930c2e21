/* Training: the steps of the plan, with evaluations and checkpoints between them. */
#pragma once

#include "worker/run.h"

/* Trains to the plan's end, to the target, or to a request to stop; evaluates; writes checkpoints,
 * run_stop and result.json. Collective. On an error r->phase and r->failed_at say where. */
int train(struct run *r, struct error *e);
