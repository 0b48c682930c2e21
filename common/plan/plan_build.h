/* Makes the plan of a job document. Pure functions. */
#pragma once

#include "common/plan/plan.h"

/* Adds a problem if the model has fewer classes than the data. */
void plan_check_data(const struct job_spec *spec, const struct plan_data *data,
                     struct problems *problems);

/* Makes the plan of a checked spec. Returns NULL if the numbers are incompatible (a global batch
 * larger than the data) and adds the reasons to *problems. Free it with plan_destroy. */
struct plan *plan_make(const struct job_spec *document, const struct plan_inputs *inputs,
                       struct problems *problems);
