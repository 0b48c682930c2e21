/* Following a job until it ends, by the daemon's live stream of its events, also over the daemon's
 * restart. */
#pragma once

#include "client/job.h"

/* Called when the job was read, behind its events, and where nothing happens at each heartbeat; the
 * job's numbers are up to date with them. *job is valid during the call only. */
typedef void follow_observer(void *context, const struct job *job);

struct follow {
    long id;
    follow_observer *observe; /* NULL: nothing to show */
    double interval_seconds;  /* it is called at most so often; the last event is never left out */
    void *context;
};

/* Until the job has ended, with follow_on_interrupt; *json is its last document (new reference).
 * Returns the outcome as job_outcome, or -code with *e filled. */
int follow_job(const struct follow *follow, json_t **json, struct error *e);

/* Ctrl-C prints what goes on and how to stop it, and exits with 130. */
void follow_on_interrupt(void);
void follow_interrupted(void);               /* prints it */
void follow_keep_job(const struct job *job); /* what that is, in its state of now */
