/* The states of a job, and their transitions, enforced by the store. See doc/job-lifecycle.md. */
#pragma once

#include <stdbool.h>

enum job_state {
    JOB_QUEUED,     /* waiting for slots */
    JOB_STARTING,   /* the launcher was started, the workers have not reported yet */
    JOB_RUNNING,    /* training */
    JOB_EVALUATING, /* evaluating */
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_STATE_COUNT /* also represents an unknown name */
};

const char *
job_state_name(enum job_state state); /* for example "queued"; "unknown" for an invalid value */
enum job_state job_state_of(const char *name); /* JOB_STATE_COUNT for NULL or an unknown name */

bool job_state_leads_to(enum job_state from, enum job_state to);

bool job_state_is_final(enum job_state state);  /* it has ended; a resume may queue it again */
bool job_state_is_active(enum job_state state); /* it has a launcher and holds slots */
