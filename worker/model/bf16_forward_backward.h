/* Passes of a model with bf16 activations: from images to head, and back from its gradient */
#pragma once

#include "worker/model/units.h"

void model_bf16_forward(struct model *m);
void model_bf16_backward(struct model *m, bool accumulate, const struct announcement *a);
