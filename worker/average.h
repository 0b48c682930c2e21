/* Numbers that each rank has its own of, averaged over all ranks. */
#pragma once

#include "worker/run.h"

/* In double, so that to average what is averaged already changes no bit. Collective. */
void average_over_ranks(struct run *r, float *numbers, size_t count);
