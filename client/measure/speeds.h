/* Speeds that predictions are made from: kept by bench, found here or at the daemon. */
#pragma once

#include "client/cmd.h"
#include "client/measure/bench.h"
#include "common/plan/plan.h"
#include "common/plan/workers.h"

/*
 * Where the document leaves the workers to the plan (cluster.workers_per_node 0): chooses them for
 * the node that --node-cores says, or this machine, and tells the plan of it. Where it leaves the
 * threads of stated workers open, only the cores are told. *chosen is what inputs point to.
 */
int speeds_choose_workers(struct job_spec *spec, const struct cmd_args *args,
                          struct plan_workers *chosen, struct plan_inputs *inputs,
                          struct problems *problems, struct error *e);

/* What one training measured, as a sample. */
struct plan_sample speeds_sample(const struct job_spec *spec, const struct bench *bench);

/* Keeps it in the cache file; a warning on stderr where that fails. Not of more threads than there
 * are cores. */
void speeds_keep(const struct job_spec *spec, const struct bench *bench);

/* From both: what finished jobs of the daemon measured, then benches of this machine.
 * Zeroed where neither knows; a daemon that does not answer knows nothing. */
struct plan_speed speeds_find(const struct job_spec *spec);
