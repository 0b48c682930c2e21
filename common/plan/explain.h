#pragma once

struct job_spec;
struct plan;
struct plan_inputs;

/* Called by plan_make after all other members are set. */
void plan_warn(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
void plan_explain(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
