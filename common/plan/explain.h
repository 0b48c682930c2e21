#pragma once

struct job_spec;
struct plan;
struct plan_inputs;

/* For plan_make, which has filled everything else. */
void plan_warn(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
void plan_explain(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
