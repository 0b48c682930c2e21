/* The states of a job and the transitions between them, which the store enforces. Described in
 * doc/job-lifecycle.md. */
#pragma once

#include <stdbool.h>

enum job_state {
    JOB_QUEUED,     /* waits for slots */
    JOB_STARTING,   /* the launcher was started, the workers have not reported yet */
    JOB_RUNNING,    /* trains */
    JOB_EVALUATING, /* counts right answers */
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_STATE_COUNT /* also: a name that is none of these */
};

const char *job_state_name(enum job_state state); /* "queued"; "unknown" for anything else */
enum job_state job_state_of(const char *name);    /* NULL is fine: JOB_STATE_COUNT */

bool job_state_leads_to(enum job_state from, enum job_state to);

bool job_state_is_final(enum job_state state);  /* ended; a resume may queue it again */
bool job_state_is_active(enum job_state state); /* has a launcher and holds slots */
