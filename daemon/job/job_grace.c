#include "daemon/job/job_grace.h"

#include <math.h>

#define GRACE_STEPS 3 /* the one they are in, and a checkpoint */

double grace_of(const struct job_limits *limits, const struct store_job *job)
{
    double step = job->images_per_sec > 0 && job->global_batch > 0
                      ? (double)job->global_batch / job->images_per_sec
                      : 0;
    return fmax(limits->cancel_grace_seconds, GRACE_STEPS * step);
}
