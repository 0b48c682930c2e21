/* Training: the steps of the plan, with evaluations and checkpoints between them. */
#pragma once

#include "worker/run.h"

/* Until the plan's end, the target or a requested stop; then writes run_stop and result.json. On an
 * error r->phase and r->failed_at say where. Collective. */
int train(struct run *r, struct error *e);
