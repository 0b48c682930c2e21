/* Making the plan of a job document. Pure: no I/O, no clock. */
#pragma once

#include "common/plan/plan.h"

/* What a plan would refuse of the data: fewer classes in the model than in them. */
void plan_check_data(const struct job_spec *spec, const struct plan_data *data,
                     struct problems *problems);

/* Makes the plan of a checked spec. Fills *problems where the numbers do not fit together (a
 * global batch larger than the data, for one) and returns NULL then. Free with plan_destroy. */
struct plan *plan_make(const struct job_spec *document, const struct plan_inputs *inputs,
                       struct problems *problems);
