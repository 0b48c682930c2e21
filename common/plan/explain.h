/* The plan's warnings, and the explanation of each of its numbers: formula, inputs, source. */
#pragma once

struct job_spec;
struct plan;
struct plan_inputs;

/* Both append to the plan, the other numbers of which are complete. */
void plan_warn(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
void plan_explain(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
