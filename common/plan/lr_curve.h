/* The learning rate over a whole run, for those who draw it. */
#pragma once

#include <jansson.h>

#include "common/plan/lr_schedule.h"

/* [[step, rate], ...] with rising steps: all of a short run; of a longer one some hundred, among
 * them the first and the last, the end of the warm-up and both sides of each milestone. A new
 * reference. */
json_t *lr_curve(const struct lr_schedule *schedule);
