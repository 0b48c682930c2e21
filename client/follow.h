#pragma once

#include "client/job.h"

/* Called when the job has been read, after its events, and at heartbeats. *job is up to date, and
 * valid during the call. */
typedef void follow_observer(void *context, const struct job *job);

struct follow {
    long id;
    follow_observer *observe; /* NULL: nothing to show */
    double interval_seconds;  /* least time between two calls; the last event is always shown */
    void *context;
};

/* Returns when the job has ended: the outcome as job_outcome, *json its last document (a new
 * reference); or -code with *e set. Installs follow_on_interrupt. */
int follow_job(const struct follow *follow, json_t **json, struct error *e);

/* Makes Ctrl-C print that the job goes on and how to stop it, and exit with 130. */
void follow_on_interrupt(void);
void follow_interrupted(void);               /* prints that text */
void follow_keep_job(const struct job *job); /* sets it, by the job's state */
