#pragma once

#include "client/cmd.h"
#include "client/measure/bench.h"
#include "common/plan/plan.h"
#include "common/plan/workers.h"

/* If the document leaves workers_per_node to the plan, chooses it for the node of --node-cores or
 * this machine and sets it in *inputs, which points to *chosen. If the document leaves only the
 * threads open, sets the cores. */
int speeds_choose_workers(struct job_spec *spec, const struct cmd_args *args,
                          struct plan_workers *chosen, struct plan_inputs *inputs,
                          struct problems *problems, struct error *e);

struct plan_sample speeds_sample(const struct job_spec *spec, const struct bench *bench);

/* Adds a sample to the cache file; prints a warning to stderr on failure. Ignores runs with more
 * threads than cores. */
void speeds_keep(const struct job_spec *spec, const struct bench *bench);

/* Gets speeds from finished jobs of the daemon and benches of this machine; zeroed if unknown. */
struct plan_speed speeds_find(const struct job_spec *spec);
