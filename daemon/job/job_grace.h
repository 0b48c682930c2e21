/* How long workers need to end in order. */
#pragma once

#include "daemon/job/job.h"

/* Seconds for the step that they are in and a checkpoint. */
double grace_of(const struct job_limits *limits, const struct store_job *job);
